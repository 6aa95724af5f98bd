"""Records are checked before anything is drawn."""

from typing import Any

import pytest

from gradveil.errors import DataError
from gradveil.reports.audit_record import check_record, leak_of, make_cells
from tests.reports.audit_records import CELLS, make_record


def test_rows_stand_beside_their_summaries() -> None:
    cells = make_cells(make_record())
    assert [(cell.arm, cell.phase, cell.outcome) for cell in cells] == list(CELLS)
    assert [cell.places for cell in cells[:2]] == [range(6), range(6, 12)]
    assert all(row["arm"] == cell.arm for cell in cells for row in cell.rows)


def test_the_leak_of_a_row_is_its_larger_advantage() -> None:
    row = {"status": "ok", "advantage_transformed": 1.0, "advantage_original": 2.5}
    assert leak_of(row) == 2.5
    assert leak_of({**row, "advantage_original": None}) == 1.0
    assert leak_of({**row, "status": "failed"}) is None
    assert leak_of({"status": "ok"}) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": "train"}, "no record of an audit"),
        ({"audit_version": 2}, "of audit version 2, this page is for version 3"),
        ({"verdict": None}, "has no 'verdict'"),
        ({"rows": []}, "rows do not follow the summaries"),
        ({"summaries": []}, "outcomes missing"),
    ],
)
def test_what_is_no_record_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_record({**make_record(), **changes})


def test_damage_inside_is_refused() -> None:
    record = make_record()
    for key, entry, message in (
        ("summaries", {**record["summaries"][0], "outcome": "private"}, "outcomes \\['private'\\]"),
        ("summaries", {"arm": "none"}, "summary 0 has no 'phase'"),
        ("summaries", {**record["summaries"][0], "images": None}, "does not count its images"),
        ("rows", {"arm": "none"}, "row 0 has no 'phase'"),
        ("rows", {**record["rows"][0], "phase": "final"}, "do not follow"),
    ):
        with pytest.raises(DataError, match=message):
            check_record({**record, key: [entry, *record[key][1:]]})
    with pytest.raises(DataError, match="49 rows for fewer"):
        check_record({**record, "rows": [*record["rows"], record["rows"][-1]]})
    with pytest.raises(DataError, match="no record"):
        check_record([record])
