"""Means with their spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy import stats

LEAST = 6
"""A mean of fewer values has no interval: their spread says too little."""


@dataclass(frozen=True)
class Interval:
    """A mean, its sample standard deviation and its confidence interval; a few values alone have no interval."""

    mean: float
    low: float | None
    high: float | None
    std: float | None
    count: int
    median: float | None = None

    def text(self, digits: int = 1, signed: bool = False) -> str:
        """Write the mean with half the interval; a few values have none.

        >>> mean_interval([1.0, 2.0, 3.0] * 3).text(), mean_interval([1.0]).text(2, signed=True)
        ('2.0 ± 0.7', '+1.00')
        """
        mean = f"{self.mean:{'+' if signed else ''}.{digits}f}"
        return mean if self.high is None else f"{mean} ± {self.high - self.mean:.{digits}f}"


def mean_interval(values: Sequence[float], confidence: float = 0.95, least: int = LEAST) -> Interval:
    """Compute the mean of `values` with Student's interval, and their median; fewer than `least` have no interval.

    >>> mean_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=None, high=None, std=1.0, count=3, median=2.0)
    """
    count = len(values)
    if count == 0:
        raise ValueError("there are no values to take the mean of: give at least one")
    mean, middle = math.fsum(values) / count, float(median(values))
    if count == 1:
        return Interval(mean, None, None, None, 1, middle)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    if count < least:
        return Interval(mean, None, None, std, count, middle)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * std / math.sqrt(count)
    return Interval(mean, mean - half, mean + half, std, count, middle)


def rate_interval(found: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Bound a rate exactly (Clopper and Pearson).

    >>> tuple(round(bound, 3) for bound in rate_interval(0, 20))
    (0.0, 0.168)
    """
    result = stats.binomtest(found, count).proportion_ci(confidence, "exact")
    return float(result.low), float(result.high)
