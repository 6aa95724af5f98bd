"""The lines of a journal, put in order."""

import math
from pathlib import Path

import pytest

from gradveil.errors import OutputError
from gradveil.search.records import read_records, sort_lines, to_json


def test_lines_are_sorted_by_what_they_hold() -> None:
    records = sort_lines(
        [
            {"study": {"seed": 0}},
            {"privacy": "lobatto-3", "places": [0, 2], "scores": {"18": [0.5, None]}, "seconds": 1.5},
            {"privacy": "lobatto-3", "places": [1], "scores": {"18": [0.25]}, "seconds": 0.5},
            {"accuracy": {"18": [-1.0, -2.0], "none": [None, -1.0]}, "seconds": 1.0},
            {"event": "done", "drawn": 5},
            {"validation": {}, "policy": "18"},
        ]
    )
    assert records.row("lobatto-3", "18", [1, 0]) == [0.25, 0.5]
    assert math.isnan(records.row("lobatto-3", "18", [2])[0])
    assert not records.lacks("lobatto-3", "18", [0, 1, 2])
    assert records.lacks("lobatto-3", "18", [3])
    assert records.lacks("lobatto-4", "18", [0])
    assert records.accuracy_score("18") == -1.5
    assert records.accuracy_score("none") == -math.inf
    assert (records.jobs, records.seconds) == (3, 3.0)
    assert (len(records.events), len(records.validations)) == (1, 1)
    assert (to_json(math.nan), to_json(0.5)) == (None, 0.5)


def test_a_folder_without_a_search_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=f"{tmp_path} holds no search"):
        read_records(tmp_path)
