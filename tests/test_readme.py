"""README and documentation say what their commands printed."""

from pathlib import Path

from scripts import leak_table
from scripts.readme_table import make_sentence, make_table

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def test_the_table_is_that_of_the_kept_audit() -> None:
    assert "\n".join(make_table(0)) in README.read_text()


def test_the_figures_of_other_images_are_those_of_the_kept_audit() -> None:
    text = " ".join(README.read_text().split())
    assert make_sentence(1) in text


def test_the_leak_by_round_is_that_of_the_kept_observations() -> None:
    assert "\n".join(leak_table.make_lines()) in (ROOT / "docs" / "federated.md").read_text()
