"""Means with their spread."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Interval:
    """A mean, its sample standard deviation and its confidence interval; one value alone has no spread."""

    mean: float
    low: float | None
    high: float | None
    std: float | None
    count: int

    def text(self, digits: int = 1, signed: bool = False) -> str:
        """Write the mean with half the interval; one value alone has none.

        >>> mean_interval([1.0, 2.0, 3.0]).text(), mean_interval([1.0]).text(2, signed=True)
        ('2.0 ± 2.5', '+1.00')
        """
        mean = f"{self.mean:{'+' if signed else ''}.{digits}f}"
        return mean if self.high is None else f"{mean} ± {self.high - self.mean:.{digits}f}"


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Compute the mean of `values` with Student's interval.

    >>> mean_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.484..., high=4.484..., std=1.0, count=3)
    """
    count = len(values)
    if count == 0:
        raise ValueError("there are no values to take the mean of: give at least one")
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, None, None, None, 1)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * std / math.sqrt(count)
    return Interval(mean, mean - half, mean + half, std, count)
