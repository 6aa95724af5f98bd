"""README and documentation say what their commands printed."""

from pathlib import Path

from scripts.readme_table import make_accuracies, make_sentence, make_table

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_table_is_that_of_the_kept_audit() -> None:
    assert "\n".join(make_table(0)) in README.read_text()


def test_the_figures_of_other_images_are_those_of_the_kept_audit() -> None:
    text = " ".join(README.read_text().split())
    assert make_sentence(1) in text
    assert f"the accuracy under the arms is {make_accuracies(0)}:" in text


def test_what_is_rebuilt_of_batches_is_that_of_the_kept_table() -> None:
    table = (ROOT / "docs" / "measured" / "batches" / "batches.md").read_text()
    text = " ".join(README.read_text().split())
    for start, rebuilt, sentence in (
        ("| lenet-relu | either | trained, 84% | 8 | 8 | `cocktail-party` | 32 |", "32 of 32", "{} images are rebuilt"),
        ("| convnet-16 | eval | trained, 88% | 8 | 8 | `cocktail-party` | 32 |", "25 of 32", "and {} on `convnet-16`"),
        ("| convnet-16 | train | trained, 88% | 8 | 8 | `cocktail-party` | 32 |", "16 of 32", "{} in training mode"),
    ):
        assert f"{start} {rebuilt} |" in table
        assert sentence.format(rebuilt) in text
    for start, others, sentence in (
        (
            "| lenet-relu | either | trained, 84% | 8 | 8 |",
            "`fast` 10 of 32",
            "gradient matching rebuilds 10 of 32",
        ),
        ("| convnet-16 | eval | trained, 88% | 8 | 8 |", "`fast` 1 of 32", "`convnet-16`, where it rebuilds 1 ("),
    ):
        assert next(line for line in table.splitlines() if line.startswith(start)).endswith(f"| {others} |")
        assert sentence in text


def test_what_policies_hide_is_as_measured() -> None:
    """The rows of the table are those of `learned` in the measured page, phase by phase."""
    measured = (README.parent / "docs" / "measured" / "policies-hide" / "policies-hide.md").read_text()
    found: dict[str, dict[str, list[str]]] = {}
    for line in measured.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["`lenet-relu`", "learned"]:
            found.setdefault(cells[2], {})[cells[3]] = cells
    text = README.read_text()
    for arm in ("none", "crop-flip", "policy:43-18-18", "policy:3-1-7+43-18-18", "policy:3-1-7"):
        before, after = found[f"`{arm}`"]["init"], found[f"`{arm}`"]["final"]
        assert before[6] == after[6] == "600"
        shares = [row[9].split()[0] for row in (before, after)]
        assert f"| `{arm}` | {shares[0]} | {shares[1]} | {after[4]} |" in text


def test_the_published_fall_is_that_of_the_ledger() -> None:
    ledger = (ROOT / "docs" / "reproduction.md").read_text()
    line = next(line for line in ledger.splitlines() if line.startswith("| CIFAR-100 with ResNet20 | 13.9 →"))
    _, _, _, ours, chance, count, excess, picked = (cell.strip() for cell in line.strip("|").split("|"))
    text = " ".join(README.read_text().split())
    assert f"falls from {ours} dB under the hybrid" in text
    assert f"scores {chance} dB there (n = {count}," in text
    assert f"the attack finds {excess} dB" in text
    assert f"picks the true image out of 20 of its class {picked}" in text


def test_the_claims_on_reconstruction_fail_on_every_network() -> None:
    ledger = (ROOT / "docs" / "reproduction.md").read_text()
    text = " ".join(README.read_text().split())
    for number, networks, sentence in (
        (1, 4, "reconstruction becomes infeasible fails on all four networks"),
        (3, 2, "the claim that policies transfer to another data set on both of its networks"),
    ):
        claim = ledger.partition(f"### Claim {number}")[2].partition(f"### Claim {number + 1}")[0]
        judged = [line for line in claim.splitlines() if ", `learned` | picked out " in line]
        assert len(judged) == networks
        assert all("| fails |" in line for line in judged)
        assert sentence in text
