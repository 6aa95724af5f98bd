"""The tables of a search on the console."""

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from gradveil.cli.search_tables import print_status, print_summary
from gradveil.search import SearchSettings, make_status
from gradveil.search.records import sort_lines

SETTINGS = SearchSettings(candidates=5, keep=1, images=2, training=None, weights="given")
ENTRY = {
    "policy": "3-1-7",
    "readable": "translateX:9",
    "privacy": 0.25,
    "privacy_low": 0.2,
    "privacy_high": 0.3,
    "privacy_std": 0.01,
    "images": 2,
    "accuracy": -1.5,
    "against_none": -0.125,
    "against_none_high": 0.01,
    "better_than_none": False,
}
NONE = {**ENTRY, "policy": "none", "privacy": 0.375, "accuracy": None}
MEASURED = {"policy": "3-1-7", "privacy": 0.25, "accuracy": -1.5, "finding": "leaks", "test_accuracy": 0.875}


def make_result(validation: list[dict[str, Any]], threshold: float | None = -1.75) -> dict[str, Any]:
    counts = dict.fromkeys(("drawn", "different", "with_accuracy", "unfit", "rejected", "kept", "beaten"), 1)
    return {
        "settings": SETTINGS.to_record(),
        "policies": [ENTRY],
        "none": NONE,
        "accuracy_least": threshold,
        "validation": validation,
        "counts": counts,
        "processor_seconds": 3.0,
        "hybrid": "3-1-7",
    }


def show(result: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=200)
    print_summary(console, result, Path("runs/search"))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_ranking_has_intervals_and_names_rule_and_loss() -> None:
    shown = show(make_result([]))
    assert "0.2500 ± 0.0500" in shown
    assert "2 images, lobatto-7, cross-entropy, mean ±" in " ".join(shown.split())
    assert "at least -1.75 was asked for" in " ".join(shown.split())
    assert "--validate N" in shown
    assert "-0.1250" in shown
    assert "Not distinguishable from no policy by S_pri on 2 images: 3-1-7." in " ".join(shown.split())
    assert "asked for" not in show(make_result([], None))


def test_what_was_measured_is_shown_with_its_interval() -> None:
    sound = {**MEASURED, "advantage": 1.5, "advantage_low": 1.0, "advantage_high": 2.0, "images": 4}
    failed = {**MEASURED, "advantage": None, "advantage_low": None, "advantage_high": None, "images": 0}
    shown = show(make_result([sound, failed]))
    assert "+1.5 ± 0.5" in shown
    assert "–" in shown
    assert "87.5%" in shown


def test_a_status_without_scores_has_no_table() -> None:
    console = Console(file=io.StringIO(), width=120)
    records = sort_lines([{"study": SETTINGS.to_record()}])
    print_status(console, make_status(records))
    records.take({"privacy": "lobatto-3", "places": [0], "scores": {"18": [0.5]}, "seconds": 1.0})
    print_status(console, make_status(records))
    assert isinstance(console.file, io.StringIO)
    first, second = console.file.getvalue().split("at work")
    assert "Leaders" not in first
    assert "0.5000 (rough)" in second
