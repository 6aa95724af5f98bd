"""The README says what its commands printed."""

from pathlib import Path

from scripts.readme_table import make_sentence, make_table

README = Path(__file__).parents[1] / "README.md"


def test_the_table_is_that_of_the_kept_audit() -> None:
    assert "\n".join(make_table(0)) in README.read_text()


def test_the_figures_of_other_images_are_those_of_the_kept_audit() -> None:
    text = " ".join(README.read_text().split())
    assert make_sentence(1) in text
