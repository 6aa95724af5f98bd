"""The rules, on intervals that are made up: each verdict is reached, and only when it should be."""

import pytest

from gradveil.experiments.paper.verdicts import (
    FAILS,
    HOLDS,
    NOTHING_TO_LOSE,
    PARTLY,
    UNDECIDED,
    Correlation,
    Finding,
    combine,
    correlate,
    judge_best,
    judge_correlation,
    judge_cost,
    judge_difference,
    judge_layers,
    judge_leak,
    judge_picked,
    judge_protection,
    judge_spread,
    limit_by_accuracy,
)
from gradveil.metrics import ClusterInterval


def interval(mean: float, half: float | None, count: int = 40) -> ClusterInterval:
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return ClusterInterval(mean, low, high, mean, count, 1)


@pytest.mark.parametrize(
    ("control", "protected", "drop", "verdict"),
    [
        (interval(3, 0.5), interval(0.2, 0.3), interval(2.8, 0.5), HOLDS),
        (interval(3, 0.5, 12), interval(0.2, 0.3, 12), interval(2.8, 0.5, 12), PARTLY),
        (interval(3, 0.5), interval(1.5, 0.3), interval(1.5, 0.5), PARTLY),
        (interval(3, 0.5), interval(2.9, 0.5), interval(0.1, 0.5), FAILS),
        (interval(3, 0.5), interval(2.5, 0.5), interval(0.5, 0.1), FAILS),
        (interval(3, 0.5), interval(4, 0.5), interval(-1, 0.5), FAILS),
        (interval(3, 2.5), interval(2, 2), interval(1, 2), UNDECIDED),
        (interval(0.2, 0.5), interval(0.1, 0.3), interval(0.1, 0.5), UNDECIDED),
        (interval(3, 0.5, 11), interval(0.2, 0.3, 11), interval(2.8, 0.5, 11), UNDECIDED),
        (interval(3, None, 2), interval(0.2, None, 2), interval(2.8, None, 2), UNDECIDED),
        (None, interval(0.2, 0.3), None, UNDECIDED),
    ],
)
def test_protection(
    control: ClusterInterval | None, protected: ClusterInterval | None, drop: ClusterInterval | None, verdict: str
) -> None:
    assert judge_protection(control, protected, drop).verdict == verdict


def test_an_attack_that_finds_nothing_without_a_policy_is_said_to_before_the_policy_was_run() -> None:
    found = judge_protection(interval(0.1, 0.4, 12), None, None)
    assert (found.verdict, found.why) == (UNDECIDED, NOTHING_TO_LOSE)
    assert "+0.1 ± 0.4 dB without, n = 12" in found.measured
    for control in (interval(0.1, 0.4, 6), interval(3, 0.5), interval(3, None, 2)):
        assert judge_protection(control, None, None).measured == "not run"


@pytest.mark.parametrize(
    ("control", "protected", "verdict"),
    [
        ((50, 100), (20, 100), FAILS),
        ((50, 100), (49, 100), FAILS),
        ((50, 100), (5, 100), HOLDS),
        ((12, 100), (8, 100), UNDECIDED),
        ((8, 100), (2, 100), UNDECIDED),
        ((20, 31), (10, 100), UNDECIDED),
        ((0, 0), (10, 100), UNDECIDED),
    ],
)
def test_who_is_picked_out_is_not_hidden(control: tuple[int, int], protected: tuple[int, int], verdict: str) -> None:
    found = judge_picked(control, protected, 0.05)
    assert found.verdict == verdict
    assert verdict == UNDECIDED or "chance 5%" in found.measured


def test_a_policy_that_costs_much_accuracy_holds_partly_at_best() -> None:
    good, bad = Finding(HOLDS, "so"), Finding(FAILS, "so")
    assert limit_by_accuracy(good, 70, 66).verdict == HOLDS
    assert limit_by_accuracy(good, 70, 64).verdict == PARTLY
    assert limit_by_accuracy(bad, 70, 64).verdict == FAILS
    assert limit_by_accuracy(good, None, 64) == good
    assert "70.0% → 64.0%" in limit_by_accuracy(good, 70, 64).measured


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, UNDECIDED), PARTLY),
        ((HOLDS, FAILS), PARTLY),
        ((FAILS, UNDECIDED), FAILS),
        ((UNDECIDED, UNDECIDED), UNDECIDED),
        ((PARTLY, PARTLY), PARTLY),
    ],
)
def test_all_parts_must_hold(parts: tuple[str, ...], verdict: str) -> None:
    found = combine([(f"part {place}", Finding(one, "so", "it")) for place, one in enumerate(parts)])  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert [(name, part.verdict) for name, part in found.parts] == [("part 0", parts[0]), ("part 1", parts[1])]


@pytest.mark.parametrize(
    ("gap", "half", "verdict"),
    [
        (0.5, 1.0, HOLDS),
        (-3, 1.0, HOLDS),
        (1.5, 1.0, PARTLY),
        (5.5, 1.0, PARTLY),
        (7, 1.0, FAILS),
        (None, 0, UNDECIDED),
    ],
)
def test_cost(gap: float | None, half: float, verdict: str) -> None:
    assert judge_cost(gap, half).verdict == verdict


@pytest.mark.parametrize(
    ("shallow", "deep", "verdict"),
    [
        (interval(0.3, 0.1), interval(0.0, 0.05), HOLDS),
        (interval(0.3, 0.1), interval(0.3, 0.05), PARTLY),
        (interval(0.0, 0.1), interval(0.0, 0.05), PARTLY),
        (interval(0.0, 0.05), interval(0.3, 0.05), FAILS),
        (interval(0.0, 0.2), interval(0.3, 0.05), UNDECIDED),
        (interval(0.3, 0.1, 6), interval(0.0, 0.05, 6), UNDECIDED),
        (None, None, UNDECIDED),
    ],
)
def test_layers(shallow: ClusterInterval | None, deep: ClusterInterval | None, verdict: str) -> None:
    assert judge_layers(shallow, deep).verdict == verdict


@pytest.mark.parametrize(
    ("shares", "images", "verdict"),
    [
        ([1.0] * 5, 100, HOLDS),
        ([1.0, 1.0, 1.0, 0.5, 0.0], 100, PARTLY),
        ([1.0, 0.5, 0.0, 0.0, 0.0], 100, FAILS),
        ([1.0] * 5, 20, UNDECIDED),
        ([], 100, UNDECIDED),
    ],
)
def test_the_best_five(shares: list[float], images: int, verdict: str) -> None:
    assert judge_best(shares, images).verdict == verdict


@pytest.mark.parametrize(
    ("raw", "gain", "verdict"),
    [
        (Correlation(0.7, 0.55, 0.8, 100), Correlation(0.7, 0.55, 0.8, 100), HOLDS),
        (Correlation(0.7, 0.55, 0.8, 100), Correlation(0.0, -0.2, 0.2, 100), PARTLY),
        (Correlation(0.1, -0.1, 0.29, 100), Correlation(0.0, -0.2, 0.2, 100), FAILS),
        (Correlation(0.2, -0.1, 0.45, 50), Correlation(0.0, -0.2, 0.2, 50), UNDECIDED),
        (Correlation(0.9, 0.8, 0.95, 20), Correlation(0.9, 0.8, 0.95, 20), UNDECIDED),
        (None, None, UNDECIDED),
    ],
)
def test_correlation(raw: Correlation | None, gain: Correlation | None, verdict: str) -> None:
    assert judge_correlation(raw, gain).verdict == verdict


def test_correlations_have_an_interval() -> None:
    found = correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7])
    assert found is not None
    assert found.low < found.r < found.high <= 1
    assert correlate([1, 2, 3], [1, 2, 3]) is None
    assert correlate([1, 1, 1, 1], [1, 2, 3, 4]) is None


def test_a_leak_and_a_difference() -> None:
    assert judge_leak(interval(2, 1)).verdict == HOLDS
    assert judge_leak(interval(-1, 0.5)).verdict == UNDECIDED, "an attack that finds nothing refutes no leak"
    assert judge_leak(interval(1, 2)).verdict == UNDECIDED
    assert judge_leak(interval(2, 1, 4)).verdict == UNDECIDED
    assert judge_leak(None).verdict == UNDECIDED
    assert judge_difference(interval(2, 1), "a less b").verdict == HOLDS
    assert judge_difference(interval(-2, 1), "a less b").verdict == FAILS
    assert judge_difference(interval(0, 1), "a less b").verdict == UNDECIDED
    assert judge_difference(interval(2, 1, 11), "a less b").verdict == UNDECIDED
    assert judge_difference(None, "").verdict == UNDECIDED


def test_spreads_are_told_apart_by_a_test() -> None:
    narrow = [10 + 0.1 * (place % 5) for place in range(20)]
    wide = [10 + 3.0 * (place % 5) for place in range(20)]
    assert judge_spread(wide, narrow).verdict == HOLDS
    assert judge_spread(narrow, wide).verdict == FAILS
    assert judge_spread(narrow, narrow[::-1]).verdict == UNDECIDED
    assert judge_spread(wide[:5], narrow).verdict == UNDECIDED
