"""The null of a score: what it is when the update was another image's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UPPER = 0.9
"""The distance from the median of a null to this share of it is its unit."""
LEAST_UNIT = 1e-9


@dataclass(frozen=True, eq=False)
class Null:
    """Scores under the null."""

    scores: NDArray[np.float64]

    @classmethod
    def of(cls, scores: Sequence[float]) -> "Null":
        return cls(np.sort(np.asarray(scores, dtype=np.float64)))

    def __len__(self) -> int:
        return len(self.scores)

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.scores, share))

    def p_value(self, score: float) -> float:
        """Return the probability of a score as high or higher under the null, counted with the score itself.

        It is never below 1/(n + 1). A fitted tail would go further down, but at probabilities that n scores cannot
        count it is passed two to three times as often as it says.

        >>> null = Null.of([0.1 * value for value in range(999)])
        >>> null.p_value(50.0), null.p_value(1e6)
        (0.5, 0.001)
        """
        above = len(self) - int(np.searchsorted(self.scores, score, side="left"))
        return (above + 1) / (len(self) + 1)


def standardise(score: float, null: Sequence[float]) -> tuple[float, list[float]]:
    """Bring a score and its null to a common scale, so that the nulls of many images can be counted together.

    The median becomes 0, and the distance from it to the 90% quantile becomes 1. Both are taken with the score among
    the others: without a leak it is one of them, and nothing tells it apart.

    >>> round(standardise(9.0, [float(value) for value in range(9)])[0], 6)
    1.25
    """
    values = np.asarray([score, *null], dtype=np.float64)
    middle, upper = np.quantile(values, [0.5, UPPER])
    scaled = (values - middle) / max(upper - middle, LEAST_UNIT)
    return float(scaled[0]), scaled[1:].tolist()


def limit_of(scores: Sequence[float], error: float) -> float:
    """Return the score that one more draw of the null passes with probability at most `error`, if so many allow it.

    With too few scores it is the greatest of them. Exact whatever the distribution is, because all draws are
    exchangeable.

    >>> limit_of([float(value) for value in range(1, 100)], 0.02)
    98.0
    """
    ordered = sorted(scores)
    allowed = int(error * (len(ordered) + 1))
    return ordered[len(ordered) - max(1, allowed)]


def holm(p_values: Sequence[float], error: float) -> list[bool]:
    """Tell which hypotheses Holm's method rejects: one false rejection or more in at most `error` of all runs.

    >>> holm([0.001, 0.04, 0.02], 0.05)
    [True, True, True]
    >>> holm([0.001, 0.04, 0.03], 0.05)
    [True, False, False]
    """
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        if p_values[place] > error / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected
