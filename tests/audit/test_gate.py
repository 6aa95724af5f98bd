"""What `--fail-above` counts."""

from dataclasses import replace
from typing import Any

import pytest

from gradveil.audit import AuditReport, AuditSettings, Cell, Outcome, Row, Summary, Verdict, find_leaks
from gradveil.errors import SettingsError
from gradveil.metrics import Interval


def interval(mean: float) -> Interval:
    return Interval(mean, None, None, 0.0, 2)


def make_report(*cells: tuple[str, Outcome, float, dict[int, float], tuple[int, ...]], **change: Any) -> AuditReport:
    """Make a report of (arm, outcome, mean advantage, advantage of each image, hits)."""
    summaries, found = [], []
    for arm, outcome, mean, images, hits in cells:
        figures = {"advantage_transformed": interval(mean), "advantage_original": interval(mean - 1)}
        summaries.append(
            Summary(arm, "init", "fast", "diagnostic", len(images), 0, figures, hits=hits, outcome=outcome)
        )
        rows = [
            replace(Row(arm, "init", "fast", image, 0, "ok"), advantage_transformed=value, advantage_original=-1.0)
            for image, value in images.items()
        ]
        found.append(Cell(arm, "init", "fast", tuple(rows), ()))
    verdict = Verdict(tuple(found), tuple(summaries), 0.1)
    return AuditReport(AuditSettings(**change), verdict, {}, {}, {}, {}, (), {}, 1, (), ())


def test_the_mean_counts_where_most_images_leak() -> None:
    report = make_report(("crop-flip", "leaks", 4.0, {1: 5.0, 2: 3.0}, ()))
    (leak,) = find_leaks(report, 3)
    assert str(leak) == "crop-flip, init, fast: leaks, mean advantage +4.0 dB"
    assert find_leaks(report, 4) == []


def test_a_confirmed_image_counts_and_another_one_does_not() -> None:
    report = make_report(("crop-flip", "some", 0.5, {1: 9.0, 2: 6.0}, (2,)))
    (leak,) = find_leaks(report, 3)
    assert str(leak) == "crop-flip, init, fast: some images leak, image #2 +6.0 dB"
    assert find_leaks(report, 6) == []


@pytest.mark.parametrize("outcome", ["none-found", "undecided", "untrusted"])
def test_without_a_leak_no_figure_counts(outcome: Outcome) -> None:
    assert find_leaks(make_report(("crop-flip", outcome, 9.0, {1: 9.0}, (1,))), 3) == []


def test_the_worst_comes_first() -> None:
    cells = (("a", "leaks", 4.0, {1: 4.0}, ()), ("b", "leaks", 7.0, {1: 7.0}, ()))
    assert [leak.summary.arm for leak in find_leaks(make_report(*cells), 3)] == ["b", "a"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("control", "expected"), [(True, ["crop-flip"]), (False, ["none", "crop-flip"])])
def test_a_control_that_nobody_asked_for_does_not_count(control: bool, expected: list[str]) -> None:
    cells = (("none", "leaks", 9.0, {1: 9.0}, ()), ("crop-flip", "leaks", 4.0, {1: 4.0}, ()))
    report = make_report(*cells, control=control)  # type: ignore[arg-type]
    assert [leak.summary.arm for leak in find_leaks(report, 3)] == expected


def test_a_negative_limit_is_refused() -> None:
    for above in (-1.0, float("nan")):
        with pytest.raises(SettingsError, match="decibels from 0"):
            find_leaks(make_report(), above)
