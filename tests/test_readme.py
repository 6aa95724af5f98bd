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


def test_what_policies_hide_is_that_of_the_kept_table() -> None:
    table = (ROOT / "docs" / "measured" / "policies-hide" / "policies-hide.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    picked = {(row[0].strip("`"), row[1]): row[7].split()[0] for row in rows}
    text = " ".join(README.read_text().split())
    assert "{} (before training) and {} (after it)".format(*both(picked, "policy:3-1-7")) in text
    assert "{} and {} under crop and flip alone".format(*both(picked, "crop-flip")) in text
    assert "{} and {} without a defence".format(*both(picked, "none")) in text


def both(picked: dict[tuple[str, str], str], arm: str) -> tuple[str, str]:
    return picked[arm, "init"], picked[arm, "final"]
