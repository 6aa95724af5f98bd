"""The tables of the study of the verdict."""

from typing import Any

import pytest

from gradveil.experiments.verdict_tables import has_small_p, render_markdown, write_gain, write_rate
from gradveil.experiments.versions import PRESENT

MADE = {"gradveil": "1", "commit": "abc", "torch": "2", "processor": "one", "cores": 2}


def make_audit(seed: int, outcomes: list[str], p_values: list[float]) -> dict[str, Any]:
    cells = [{"outcome": outcome, "reached": 1, "unconfirmed": 1, "p_values": p_values} for outcome in outcomes]
    trial = {"null": "noise", "data": "sample", "preset": "quick", "participants": 1, "seed": seed}
    settings = {"labels": "known", "images": 8}
    return {"trial": trial, "settings": settings, "cells": cells, "steps": 25, "provenance": MADE, **PRESENT}


def make_pool(outcomes: list[str]) -> dict[str, Any]:
    row = {"reached": True, "advantage_transformed": 3.0, "advantage_original": 1.0}
    draws = [{"images": 8, "outcomes": [outcome]} for outcome in outcomes]
    cells = [{"arm": "none", "phase": "init", "rows": [row, {**row, "reached": False}]}]
    return {"cells": cells, "draws": draws, "provenance": MADE, **PRESENT}


def test_an_audit_counts_once_however_many_of_its_cells_found_something() -> None:
    audits = [make_audit(0, ["some", "some", "undecided"], [0.2, 0.004]), make_audit(1, ["undecided"] * 3, [0.5, 0.6])]
    text = render_markdown({"false findings": audits})
    assert "| all | 2 | 0 (0.0% to 84.2%) | 1 (1.3% to 98.7%) | 0% | 67% | 0% | 50.00% of 12 | 25.00% |" in text
    assert "a second attack took back: 6." in text
    assert "| noise, sample, quick, 1× | 2 | 0 (0.0% to 84.2%) | 1 (1.3% to 98.7%) |" in text


def test_a_p_value_alone_is_held_against_all_images_of_its_audit() -> None:
    """Two cells of four images: 0.05 in 8 is 0.00625."""
    small, large = ([value, 0.3, 0.4, 0.5] for value in (0.006, 0.007))
    assert [has_small_p(make_audit(0, ["undecided"] * 2, values)) for values in (small, large)] == [True, False]


def test_power_tells_leaks_from_all_that_was_found() -> None:
    text = render_markdown({"power": [make_pool(["leaks", "some", "undecided", "untrusted"])]})
    assert "| `none` | init | +3.0 | 50% of 2 | 25% / 50% |" in text


def test_a_part_that_was_not_run_says_so() -> None:
    assert render_markdown({"power": [make_pool(["leaks"])]}).count("Not run yet.") == 2


@pytest.mark.parametrize(("found", "text"), [(0, "0 (0.0% to 1.8%)"), (10, "10 (2.4% to 9.0%)")])
def test_a_rate_has_its_exact_interval(found: int, text: str) -> None:
    assert write_rate(found, 200) == text


def test_a_gain_has_its_interval_and_number() -> None:
    assert write_gain({"mean": 0.5, "low": 0.4, "high": 0.62, "count": 9}) == "+0.50 (+0.40 to +0.62), n = 9"
