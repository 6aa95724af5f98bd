"""Rows of audits as journals hold them: plain records, read by what their version called a figure."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

from gradveil.metrics import ClusterInterval, cluster_interval

Row = Mapping[str, Any]
Target = Literal["fed", "original"]
Finding = Literal["leak", "undecided", "no leak found", "no result"]
ADVANTAGES: dict[Target, tuple[str, ...]] = {
    "fed": ("advantage_transformed",),
    "original": ("advantage_aligned", "advantage_original"),
}
"""For what the model was fed and for the original the names of the advantage; the first that a row has counts.

The first versions scored the original twice, and aligned only under a name of its own.
"""
MARGIN = 1.0
"""dB above chance that an interval must clear to count as a leak."""
ENOUGH = 32
"""Images without which "no leak found" is not said."""
STRIKING = 3.0
"""dB above chance from which images are counted. The count is no finding: chance alone gets there now and then."""


def sound(rows: Sequence[Row]) -> list[Row]:
    """Keep the rows that have a result."""
    return [row for row in rows if row["status"] == "ok"]


def advantage(row: Row, target: Target) -> float:
    """Return by how much the attack beat chance, in dB."""
    return float(row[next(name for name in ADVANTAGES[target] if name in row)])


def pool(clustered: Sequence[tuple[Hashable, Row]], target: Target) -> ClusterInterval | None:
    """Average the advantages of rows, each with the cluster it belongs to; None without any result."""
    found = [(cluster, advantage(row, target)) for cluster, row in clustered if row["status"] == "ok"]
    return cluster_interval([value for _, value in found], [cluster for cluster, _ in found]) if found else None


def count_striking(rows: Sequence[Row], target: Target) -> int:
    """Count the images that were rebuilt at 3 dB above chance or more."""
    return sum(advantage(row, target) >= STRIKING for row in sound(rows))


def judge(fed: ClusterInterval | None, original: ClusterInterval | None, failed: int = 0) -> Finding:
    """Say what the intervals allow to say; a failed attack is never evidence that nothing leaks.

    A leak: the lower bound for either target is above the margin. No leak found: the upper bounds for both are below it
    on 32 images or more.
    """
    if fed is None or original is None:
        return "no result"
    if any(figure.low is not None and figure.low > MARGIN for figure in (fed, original)):
        return "leak"
    below = all(figure.high is not None and figure.high < MARGIN for figure in (fed, original))
    return "no leak found" if below and failed == 0 and min(fed.count, original.count) >= ENOUGH else "undecided"


def write_figure(figure: ClusterInterval | None, signed: bool = False, digits: int = 1) -> str:
    """Write a mean with half its 95% interval and the median in brackets, or a dash.

    >>> write_figure(cluster_interval([1.0, 1.0, 4.0], [0, 0, 0]), signed=True)
    '+2.0 (+1.0)'
    """
    if figure is None:
        return "–"
    return f"{figure.text(digits, signed)} ({figure.median:{'+' if signed else ''}.{digits}f})"


def compare(difference: ClusterInterval | None) -> str:
    """Write a paired difference, and in words what its interval shows."""
    if difference is None:
        return "–"
    text = difference.text(signed=True)
    if difference.low is None or difference.high is None:
        return text
    word = "more" if difference.low > 0 else "less" if difference.high < 0 else "not shown"
    return f"{text}, {word}"
