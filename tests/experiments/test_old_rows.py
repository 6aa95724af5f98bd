"""Old rows are read by the names of their version, and judged by intervals alone."""

import pytest

from gradveil.experiments.old_rows import (
    ENOUGH,
    Row,
    advantage,
    compare,
    count_striking,
    judge,
    pool,
    write_figure,
)
from gradveil.metrics import ClusterInterval, cluster_interval

SEEDS = [seed for seed in range(4) for _ in range(ENOUGH // 4)]


def figure(low: float, high: float, count: int = ENOUGH) -> ClusterInterval:
    return ClusterInterval((low + high) / 2, low, high, 0.0, count, 3)


def test_each_version_calls_the_original_by_its_own_name() -> None:
    first = {"status": "ok", "advantage_transformed": 4.0, "advantage_original": -9.0, "advantage_aligned": 1.0}
    later = {"status": "ok", "advantage_transformed": 4.0, "advantage_original": 2.0}
    assert [advantage(row, "original") for row in (first, later)] == [1.0, 2.0]
    assert advantage(first, "fed") == 4.0


def test_failed_rows_have_no_advantage() -> None:
    good: Row = {"status": "ok", "advantage_transformed": 3.0, "advantage_aligned": 2.9}
    bad: Row = {"status": "failed", "advantage_transformed": None, "advantage_aligned": None}
    rows = [("seed 0", good), ("seed 0", bad), ("seed 1", good)]
    found = pool(rows, "fed")
    assert found is not None
    assert (found.mean, found.count, found.clusters) == (3.0, 2, 2)
    assert pool([("seed 0", bad)], "fed") is None
    assert [count_striking([good, bad], target) for target in ("fed", "original")] == [1, 0]


@pytest.mark.parametrize(
    ("fed", "original", "failed", "finding"),
    [
        (figure(1.1, 9.0), figure(-3.0, 0.0), 0, "leak"),
        (figure(-3.0, 0.0), figure(1.1, 9.0), 0, "leak"),
        (figure(0.9, 9.0), figure(-3.0, 0.0), 0, "undecided"),
        (figure(-3.0, 0.9), figure(-3.0, 0.9), 0, "no leak found"),
        # One upper bound of two is above the margin.
        (figure(-3.0, 0.9), figure(-3.0, 1.4), 0, "undecided"),
        (figure(-3.0, 1.4), figure(-3.0, 0.9), 0, "undecided"),
        (figure(-3.0, 0.9, 12), figure(-3.0, 0.9, 12), 0, "undecided"),
        (figure(-3.0, 0.9), figure(-3.0, 0.9), 1, "undecided"),
        (None, None, 4, "no result"),
    ],
)
def test_findings(fed: ClusterInterval | None, original: ClusterInterval | None, failed: int, finding: str) -> None:
    assert judge(fed, original, failed) == finding


def test_one_striking_image_is_no_finding() -> None:
    found = cluster_interval([0.0] * (ENOUGH - 1) + [20.0], SEEDS)
    assert judge(found, found) == "undecided"
    few = cluster_interval([50.0] * 5, [0] * 5)
    assert judge(few, few) == "undecided", "five images have no interval"


def test_differences_say_what_they_show() -> None:
    assert compare(None) == write_figure(None) == "–"
    assert compare(figure(1.0, 3.0)) == "+2.0 ± 1.0, more"
    assert compare(figure(-3.0, -1.0)) == "-2.0 ± 1.0, less"
    assert compare(figure(-1.0, 2.0)) == "+0.5 ± 1.5, not shown"
    assert compare(cluster_interval([1.0], [0])) == "+1.0"
