"""What the page of attack results says in words is what the measured tables beside it hold."""

from pathlib import Path

from scripts.page_tables import TABLE

DOCS = Path(__file__).parents[1] / "docs"
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
Row = dict[str, str]


def read_table(page: str, number: int) -> list[Row]:
    """Read a table of a measured page, a row as its cells by column."""
    head, _, *rows = TABLE.findall((DOCS / "measured" / page).read_text())[number - 1].splitlines()
    columns, *cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in (head, *rows))
    return [dict(zip(columns, one, strict=True)) for one in cells]


def prose() -> str:
    return " ".join((DOCS / "attack-results.md").read_text().split())


def count(rows: list[Row], column: str, word: str) -> str:
    """Write how many differences are shown in one direction."""
    return NUMBERS[sum(row[column].endswith(f", {word}") for row in rows)]


def test_the_comparison_with_modern_is_that_of_the_table() -> None:
    rows = {row["against"]: row for row in read_table("attackers/attackers.md", 1)}
    measures = ("T(x), dB", "aligned x, dB", "over wrong updates, dB")
    longer, same = rows["modern, 300 gradients"], rows["fast, 220 gradients"]
    assert [longer[one][-6:] for one in measures] == [", more"] * 3
    assert float(longer["share of its time"]) < 1
    assert [same[one][-6:] for one in measures] == [", more"] * 3
    assert rows["fast, 300 gradients"][measures[2]].endswith(", not shown")
    assert "**`standard` is ahead of `modern` in less time, at T(x), at x and over wrong updates.**" in prose()
    assert "over wrong updates that is shown for 220 gradients and not for 300" in prose()


def test_the_comparison_with_version_6_is_that_of_the_table() -> None:
    every = read_table("attackers/attackers.md", 3)
    places = [row for row in every if row["against"] == "standard 6" and row["seed"] == "1"]
    fed, original = "T(x), dB", "aligned x, dB"
    assert len(places) == 16
    assert (
        f"**More in {count(places, fed, 'more')} of sixteen places of seed 1 at T(x) against version 6, less in "
        f"{count(places, fed, 'less')}; at x more in {count(places, original, 'more')}, less in "
        f"{count(places, original, 'less')}**"
    ) in prose()
    others = [row for row in every if row["seed"] != "1"]
    assert len({row["seed"] for row in others}) == 3
    assert all(row[one].endswith(", not shown") for row in others for one in (fed, original))


def test_what_being_told_is_worth_is_that_of_the_table() -> None:
    rows = read_table("attackers/attackers.md", 5)
    measures = ("T(x), dB", "aligned x, dB", "over wrong updates, dB")
    assert {count(rows, one, "less") for one in measures} == {"none"}
    trained = [row for row in rows if row["phase"] == "final"]
    (shown,) = {count(trained, one, "more") for one in measures[:2]}
    assert f"more in {shown} of {NUMBERS[len(trained)]} places at T(x) and at x" in prose()
    assert {count([row for row in rows if row["phase"] == "init"], one, "more") for one in measures} == {"none"}


def test_what_random_policies_hide_is_that_of_the_table() -> None:
    rows = read_table("policies-hide/policies-hide.md", 1)
    (row,) = (row for row in rows if row["model"] == "`lenet-relu`" and row["arm"] == "random policies: 10")
    before, after, size = row["`learned`"].replace(" → ", " (").split(" (")
    low, high = (share.rstrip("%").replace("–", " to ") for share in (before, after))
    assert size == "n = 200)"
    assert f"*So it does under all ten random policies* (one seed, n = 200): {low}% before, {high}% after" in prose()


def test_what_is_found_at_the_trained_network_with_batch_normalisation_is_that_of_the_table() -> None:
    every = read_table("policies-hide/policies-hide.md", 2)
    named = [row for row in every if row["model"] == "`convnet-16`" and "random" not in row["arm"]]
    rows = [row for row in named if row["phase"] == "final"]

    def spread(attack: str, column: str) -> str:
        shares = [int(row[column].split("%")[0]) for row in rows if row["attack"] == attack]
        assert len(shares) == 5
        return f"{min(shares)} to {max(shares)}%"

    matched, swapped = spread("matching", "picked out of 20"), spread("matching", "swapped: picked out")
    assert f"`matching` picks out {matched}, without a policy too, where updates swapped within the class" in prose()
    assert f"give {swapped}; `learned` picks out {spread('learned', 'picked out of 20')}." in prose()
    assert {row["n"] for row in rows} == {"60", "200"}


def test_what_is_rebuilt_of_batches_is_that_of_the_table() -> None:
    rows = {(row["model"], row["mode"], row["phase"].split(",")[0]): row for row in read_table("batches/batches.md", 1)}
    network = {key[1:]: row for key, row in rows.items() if key[0] == "convnet-16"}

    def rebuilt(row: Row, size: str) -> int:
        return int(row[size].split()[0])

    evaluated, trained = network["eval", "trained"], network["train", "trained"]
    assert (
        f"{rebuilt(evaluated, '8')} of 32 in evaluation and {rebuilt(trained, '8')} of 32 in training mode" in prose()
    )
    singles = [rebuilt(network["eval", "untrained"], size) for size in ("1", "2")]
    others = [rebuilt(trained, size) for size in ("1", "2")]
    assert network["eval", "untrained"]["1"].endswith("`fast`")
    assert trained["1"].endswith("`fast`")
    assert (
        f"of single images of the untrained one it rebuilds {singles[0]} of 32 in evaluation mode and of the trained "
        f"one {others[0]} in training mode ({singles[1]} and {others[1]} of them in batches of 2)"
    ) in prose()
    small = {phase: rows["lenet-relu", "either", phase] for phase in ("untrained", "trained")}
    shares = [rebuilt(small[phase], size) for size in ("16", "32") for phase in ("untrained", "trained")]
    written = [NUMBERS[share] if share == 0 else f"{share}" for share in shares]
    assert "at `lenet-relu` {} and {} in batches of 16, {} and {} in one of 32".format(*written) in prose()
