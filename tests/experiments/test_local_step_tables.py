"""The tables of the study of local steps."""

from gradveil.experiments.local_step_tables import means, render_markdown, write_rows
from gradveil.experiments.local_steps import NearnessTrial, OrderTrial, SightingTrial

SUMMARY = {
    "figures": {
        "advantage_transformed": {"mean": 3.25, "low": 3.0, "high": 3.5},
        "advantage_original": {"mean": -1.0, "low": None, "high": None},
    },
    "share": {"reached": 7, "images": 35},
    "images": 35,
    "outcome": "leaks",
}


def test_rows_say_what_was_attacked_and_reached() -> None:
    (row,) = write_rows(OrderTrial(5, 1, 5, 35, "fedavg"), {"summary": SUMMARY, "seconds": 12.4})
    assert row == ["5", "1", "5", "`fedavg`", "35", "+3.2 ± 0.2", "7 of 35", "leaks", "12"]
    (row,) = write_rows(SightingTrial("none", "fast", 120, 4), {"summary": SUMMARY})
    assert row == ["`none`", "`fast`", "4", "35", "+3.2 ± 0.2", "-1.0", "7 of 35", "leaks"]
    rows = write_rows(NearnessTrial("convnet-8", "train"), {"whole": [[0.1, 0.3]], "last_layer": [[0.01, 0.02]]})
    assert rows[0] == ["convnet-8, train", "32", "whole", "0.1", "0.3"]


def test_what_was_not_run_is_counted() -> None:
    text = render_markdown([])
    assert "0 of 10 trials were run." in text
    assert "0 of 12 trials were run." in text


def test_columns_are_averaged() -> None:
    assert means([[1.0, 0.0], [3.0, 0.5]]) == ["2", "0.25"]
