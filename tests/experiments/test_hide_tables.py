"""The table of what policies hide."""

from typing import Any

import pytest

from gradveil.errors import SettingsError
from gradveil.experiments.hide_lines import COLUMNS, make_lines
from gradveil.experiments.hide_tables import GLANCE, glance_rows, render_markdown


def entry(arm: str, seed: int, gain: float, found: bool, attack: str = "learned") -> dict[str, Any]:
    row = {
        "status": "ok",
        "psnr_original": 12 + gain,
        "floor_original": 10.0,
        "advantage_original": gain,
        "identified_original": found,
    }
    version = {} if attack == "matching" else {"learned_version": 2}
    failed = {**row, "status": "failed", "identified_original": None}
    swapped = {"swapped_gain": -1.0, "swapped_identified": False}
    phase = {"rows": [row] * 8 + [failed], "swapped": [swapped] * 8}
    return {
        "trial": {"arm": arm, "seed": seed, "attack": attack, "public": 10, "private": 10, "model": "lenet-relu"},
        "study": {"data": "some", "training": {"epochs": 2}, "audit_version": 3, "image_choice": 2, **version},
        "test_accuracy": 0.5,
        "phases": {"init": phase, "final": phase},
    }


def test_seeds_of_an_arm_are_put_together_and_failures_are_counted() -> None:
    entries = [entry("none", 0, 4.0, True), entry("none", 1, 2.0, False), entry("crop-flip", 0, 1.0, False)]
    lines = make_lines(entries)
    assert [(line.cell.arm, line.cell.phase) for line in lines] == [
        ("crop-flip", "init"),
        ("none", "init"),
        ("crop-flip", "final"),
        ("none", "final"),
    ]
    first = lines[1]
    assert (first.aligned.mean, first.plain.mean, first.swapped.mean) == (3, 5, -1)
    assert (first.aligned.clusters, first.aligned.count, first.failed) == (2, 16, 2)
    assert (first.identified.found, first.identified.count) == (8, 16)


def test_the_table_has_a_line_for_each_and_says_what_one_seed_means() -> None:
    entries = [entry("none", 0, 4.0, True)]
    text = render_markdown(entries)
    glance, table = (block.splitlines() for block in text.split("\n\n") if block.startswith("|"))
    assert len(glance) == 3
    assert len(table) == 4
    assert all(line.count("|") == len(COLUMNS) + 1 for line in table)
    assert "8 (1 failed)" in table[2]
    assert "100% (63–100)" in table[2]
    assert "does not speak of another seed" in text


def test_attacks_stand_apart_and_what_was_not_run_is_said() -> None:
    entries = [entry("none", 0, 4.0, True, attack) for attack in ("both", "learned", "matching")]
    lines = make_lines(entries)
    assert [line.cell.attack for line in lines] == 2 * ["learned", "matching", "both"]
    text = render_markdown(entries)
    assert "`learned`: version 2." in text
    assert "44 of `lenet-relu` with learned" in text


def test_at_a_glance_an_arm_has_one_row_and_random_policies_share_one() -> None:
    entries = [
        entry("none", 0, 4.0, True),
        entry("none", 0, 4.0, True, "matching"),
        entry("random-policy:0", 0, 4.0, True),
        entry("random-policy:1", 0, 4.0, False),
        entry("random-policy:1", 1, 4.0, False),
    ]
    plain, several = (dict(zip(GLANCE, row, strict=True)) for row in glance_rows(make_lines(entries)))
    assert (plain["arm"], plain["`learned`"], plain["`both`"]) == ("`none`", "100% → 100% (n = 8)", "not run")
    assert (several["arm"], several["swapped"]) == ("random policies: 2", "0%")
    assert several["`learned`"] == "0–100% → 0–100% (n ≥ 8)"


def test_at_a_glance_a_phase_without_a_sound_row_has_a_dash() -> None:
    one = entry("none", 0, 4.0, True)
    one["phases"]["init"] = {"rows": [], "swapped": []}
    ((*_, learned, _, _, _),) = glance_rows(make_lines([one]))
    assert learned == "– → 100% (n = 8)"


def test_lines_of_several_versions_are_refused() -> None:
    entries = [entry("none", 0, 4.0, True), entry("none", 1, 4.0, True)]
    entries[1]["study"]["learned_version"] = 1
    with pytest.raises(SettingsError, match="learned_version"):
        render_markdown(entries)


def test_an_arm_without_a_sound_row_has_no_line() -> None:
    empty = entry("none", 0, 4.0, True)
    empty["phases"] = {phase: {"rows": [], "swapped": []} for phase in ("init", "final")}
    assert make_lines([empty]) == []
