"""The table of what an attacker gains by being told the defence."""

from pathlib import Path
from typing import Any

import pytest

from gradveil.errors import SettingsError
from gradveil.experiments.told_defences import ToldStudy, ToldTrial
from gradveil.experiments.told_tables import COLUMNS, make_lines, render_costs, render_markdown, write_told_tables


def entry(arm: str, told: bool, gains: list[float], seconds: float = 2.0) -> dict[str, Any]:
    rows = [
        {
            "image": image,
            "status": "ok",
            "advantage_transformed": gain,
            "advantage_original": gain - 1,
            "identified_original": gain > 1,
            "crowd": 20,
        }
        for image, gain in enumerate(gains)
    ]
    failed = {**rows[0], "image": 99, "status": "failed", "identified_original": None}
    return {
        "trial": ToldTrial(arm, told).to_record(),
        "study": {"data": "some", "training": {"epochs": 2}},
        "test_accuracy": 0.5,
        "training_seconds": seconds,
        "used": {arm: "a secret"} if told else {},
        "cells": [{"phase": "init", "attack": "fast", "outcome": "leaks", "reason": "", "rows": [*rows, failed]}],
    }


NONE, TOLD, UNTOLD = (
    entry("none", True, [9.0] * 8),
    entry("oasis", True, [5.0, 3.0] * 4, 6.0),
    entry("oasis", False, [1.0, 0.0] * 4, 6.0),
)


def test_who_is_told_is_compared_with_who_is_not_on_the_same_images() -> None:
    none, told, untold = make_lines([NONE, TOLD, UNTOLD])
    assert none.gain is None
    assert untold.gain is None
    assert told.gain is not None
    assert told.gain.mean == pytest.approx(3.5)
    assert (told.transformed.mean, told.original.mean) == (4, 3)
    assert (told.identified, told.original.count, told.failed) == (8, 8, 1)


def test_the_table_has_a_line_for_each_and_the_costs() -> None:
    text = render_markdown(make_lines([NONE, TOLD, UNTOLD]), [NONE, TOLD, UNTOLD])
    table = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(table) == 5
    assert all(line.count("|") == len(COLUMNS) + 1 for line in table[:3])
    assert "| yes | 8 (1 failed) |" in table[1]
    assert "does not speak of another seed" in text
    assert render_costs([NONE, TOLD, UNTOLD]) == [
        ["`none`", "50.0%", "1.0×", "a secret"],
        ["`oasis`", "50.0%", "3.0×", "a secret"],
    ]


def test_a_cell_without_a_sound_row_has_no_line() -> None:
    empty = {**NONE, "cells": [{**NONE["cells"][0], "rows": NONE["cells"][0]["rows"][-1:]}]}
    assert make_lines([empty]) == []


def test_without_results_no_table_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no table was written"):
        write_told_tables(tmp_path, ToldStudy(tmp_path, None))
    assert not list(tmp_path.glob("*.md"))
