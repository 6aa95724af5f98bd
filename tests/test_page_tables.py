"""Tables that pages show are those of the measured pages."""

from pathlib import Path

import pytest

from scripts.page_tables import fill, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_shows_the_measured_tables(page: Path) -> None:
    assert page.read_text() == fill(page), "run: python -m scripts.page_tables"


def test_several_pages_do() -> None:
    assert {"attack-results.md", "defences.md"} <= {page.name for page in pages()}


def test_a_table_is_copied_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "measured.md").write_text("text\n\n| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n")
    page = tmp_path / "page.md"
    page.write_text("<!-- table 2 of measured.md -->\nold\n<!-- end of table -->\n")
    assert fill(page) == "<!-- table 2 of measured.md -->\n| b |\n|---|\n| 2 |\n<!-- end of table -->\n"
    page.write_text("<!-- table 3 of measured.md -->\n<!-- end of table -->\n")
    with pytest.raises(SystemExit, match=r"table 3 of measured\.md, which has 2"):
        fill(page)
