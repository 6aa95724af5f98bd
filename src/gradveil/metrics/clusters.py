"""Means of values that come in clusters, such as images attacked on the models of a few seeds."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from gradveil.metrics.intervals import LEAST, mean_interval

Key = TypeVar("Key", bound=tuple[Hashable, Hashable])


@dataclass(frozen=True)
class ClusterInterval:
    """A mean with its confidence interval over clusters, and the median; `count` values in `clusters` clusters.

    Fewer than 6 values have no interval. With one cluster the interval is that over its values: it speaks of this one
    model, and not of another seed's.
    """

    mean: float
    low: float | None
    high: float | None
    median: float
    count: int
    clusters: int

    @property
    def note(self) -> str:
        """Say what the interval does not cover.

        >>> cluster_interval([1.0] * 8, [0] * 8).note
        'interval over the images of one model: it does not speak of another seed'
        """
        if self.low is None:
            return f"fewer than {LEAST} images: no interval"
        if self.clusters == 1:
            return "interval over the images of one model: it does not speak of another seed"
        return ""

    def text(self, digits: int = 1, signed: bool = False) -> str:
        """Write the mean with half the interval where there is one.

        >>> cluster_interval([1.0, 3.0, 1.0, 3.0, 2.0, 2.0], "aabbcc").text(signed=True)
        '+2.0 ± 0.9'
        """
        mean = f"{self.mean:{'+' if signed else ''}.{digits}f}"
        return mean if self.high is None else f"{mean} ± {self.high - self.mean:.{digits}f}"


def cluster_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> ClusterInterval:
    """Compute the mean of the clusters' means with Student's interval over them, k − 1 degrees of freedom.

    The interval is never narrower than the one that takes all values for independent: the means of a few clusters can
    be close together by chance.

    >>> cluster_interval([1.0, 2.0, 3.0, 7.0, 8.0, 9.0], [0, 0, 0, 1, 1, 1])
    ClusterInterval(mean=5.0, low=-33.1..., high=43.1..., median=5.0, count=6, clusters=2)
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values and {len(clusters)} clusters: give the cluster of each value")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    over_values = mean_interval(values, confidence, least=2)
    over_clusters = mean_interval([mean_interval(each).mean for each in members.values()], confidence, least=2)
    halves = [each.high - each.mean for each in (over_values, over_clusters) if each.high is not None]
    mean, half = over_clusters.mean, max(halves) if len(values) >= LEAST else None
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return ClusterInterval(mean, low, high, median(values), len(values), len(members))


def paired_interval(ours: Mapping[Key, float], theirs: Mapping[Key, float]) -> ClusterInterval | None:
    """Compare two ways on what both have: keys are (cluster, image), and the differences are ours − theirs."""
    shared = [key for key in ours if key in theirs]
    if not shared:
        return None
    return cluster_interval([ours[key] - theirs[key] for key in shared], [cluster for cluster, _ in shared])
