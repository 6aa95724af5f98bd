"""Pages of the site read as they do elsewhere."""

from scripts.site_hooks import on_page_content


def test_a_bar_in_a_cells_code_loses_its_backslash() -> None:
    html = r"<table><tr><td><code>a\|b</code>, <code>c\|d</code></td><td>e\|f</td></tr></table>"
    assert on_page_content(html) == r"<table><tr><td><code>a|b</code>, <code>c|d</code></td><td>e\|f</td></tr></table>"


def test_code_outside_of_tables_is_left_alone() -> None:
    html = r"<p><code>grep 'a\|b'</code></p><table><tr><td>c</td></tr></table>"
    assert on_page_content(html) == html
