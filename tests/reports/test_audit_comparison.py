"""Several audits on one page."""

from typing import Any

from gradveil.reports import render_comparison
from gradveil.reports.sealed_page import is_unchanged, seals_in
from gradveil.results import SEAL
from tests.reports.audit_records import CELLS, SCRIPT, make_record
from tests.reports.test_audit_page import Page


def compare(**changes: Any) -> str:
    return Page(render_comparison({"runs/one": make_record(), "runs/two": {**make_record(seed=1), **changes}})).text


def test_runs_stand_side_by_side_cell_by_cell() -> None:
    records = {"runs/one": make_record(), "runs/two": make_record(cells=(CELLS[0], ("new", "init", "some")), seed=1)}
    source = render_comparison(records)
    page = Page(source).text
    assert seals_in(source) == [record[SEAL] for record in records.values()]
    assert is_unchanged(source)
    assert "runs/one" in page
    assert "runs/two" in page
    assert page.count("not run") == 8  # seven cells that only the first has, one that only the second has
    assert "init · new" in page
    assert "1 of 9 settings were run in all 2 audits." in page
    assert "data:image" not in source
    assert "does not constitute a determination of anonymity" in page


def test_outcomes_that_differ_are_counted_and_named() -> None:
    cells = (("none", "init", "undecided"), *CELLS[1:])
    records = {"a": make_record(), "b": make_record(cells=cells)}
    page = Page(render_comparison(records)).text
    assert "The outcomes differ in 1 of 8 settings." in page
    assert page.count("init · none outcomes differ") == page.count(" outcomes differ") - 1 == 1
    assert "No setting has different outcomes" in compare()


def test_only_settings_that_differ_are_listed() -> None:
    page = compare()
    assert "Settings that differ setting run 1 run 2 seed 0 1" in page
    same = Page(render_comparison({"a": make_record(), "b": make_record()})).text
    assert "All settings are the same." in same


def test_what_must_not_be_compared_is_said() -> None:
    assert "differ in standard version (6, 5): do not compare" in compare(standard_version=5)
    assert "differ in kind (diagnostic, deployment)" in compare(kind="deployment")
    settings = {**make_record()["settings"], "model": "convnet-16"}
    assert "attack different things (model)" in compare(settings=settings)
    rows = [{**row, "image": row["image"] + 1} for row in make_record()["rows"]]
    assert "different images" in compare(rows=rows)
    assert "do not compare" not in compare()


def test_names_from_outside_stay_text() -> None:
    source = render_comparison({SCRIPT: make_record(), "b": make_record()})
    assert SCRIPT not in source
    assert SCRIPT in Page(source).text
