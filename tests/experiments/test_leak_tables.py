"""Tables and a picture of what was rebuilt, from lines of the journal."""

from typing import Any

from gradveil.experiments.federated_leak import ROUNDS, LeakCell, LeakTrial, cells
from gradveil.experiments.leak_tables import draw_leaks, make_overview, make_table

PNG = b"\x89PNG"
CELLS = list(cells())
FIRST = CELLS[0]
TRIALS = [LeakTrial(cell, number) for number in ROUNDS for cell in CELLS]


def make_line(cell: LeakCell, number: int, mean: float, outcome: str = "leaks") -> dict[str, Any]:
    figure = {"mean": mean, "low": mean - 1, "high": mean + 1}
    summary = {
        "figures": {"advantage_transformed": figure, "advantage_original": {**figure, "mean": mean / 2}},
        "share": {"reached": 5, "images": 32},
        "images": 32,
        "failed": 0,
        "outcome": outcome,
    }
    return {**LeakTrial(cell, number).key(), "summary": summary}


def test_a_training_is_one_line_with_its_rounds_side_by_side() -> None:
    overview = make_overview(TRIALS, [make_line(FIRST, 1, 26.0), make_line(FIRST, 200, 4.0, "untrusted")])
    line = next(line for line in overview if line.startswith(f"| {FIRST.update} | lenet-relu, train | `none` |"))
    assert line.endswith(
        "| +26.0 ± 1.0 (x +13.0), 5 of 32: leaks | not run | +4.0 ± 1.0 (x +2.0), 5 of 32: not trustworthy |"
    )
    assert overview[-1].startswith(f"2 of {len(TRIALS)} rounds were attacked")


def test_the_long_table_has_a_line_for_each_round() -> None:
    table = make_table(TRIALS, [make_line(FIRST, number, 3.0) for number in ROUNDS])
    assert len([line for line in table if "+3.0 ± 1.0" in line]) == len(ROUNDS)


def test_the_picture_needs_no_complete_study() -> None:
    whole = [make_line(cell, number, 1.0 * number) for cell in CELLS for number in ROUNDS]
    assert draw_leaks(TRIALS, whole).startswith(PNG)
    assert draw_leaks(TRIALS, whole[:4]).startswith(PNG)
