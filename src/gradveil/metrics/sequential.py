"""Tests of a share that may be looked at after every image and stopped at any time.

The evidence against a share is a mean of likelihood ratios, which is a test martingale: under the share tested it
passes 1/error in at most `error` of all runs, however long they are and whenever they stop (Ville's inequality).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy import special

Answer = Literal["above", "below"]
"""What a sequential test can answer: the share lies above or below the limit."""
STEPS = 40
"""Halvings of the range when a bound is sought."""


@dataclass(frozen=True)
class ShareTest:
    """Is a share above or below `share`? Each of the two answers is wrong in at most its error, at any time."""

    share: float
    error_above: float = 0.05
    error_below: float = 0.05

    def answer(self, found: int, count: int) -> Answer | None:
        """Answer after `count` images of which `found` count; None while the answer is not certain.

        >>> test = ShareTest(0.1)
        >>> test.answer(3, 3), test.answer(0, 20), test.answer(0, 33)
        ('above', None, 'below')
        """
        if evidence_above(self.share, found, count) >= -math.log(self.error_above):
            return "above"
        return "below" if evidence_below(self.share, found, count) >= -math.log(self.error_below) else None


def bound_share(found: int, count: int, error: float = 0.05) -> tuple[float, float]:
    """Return bounds that hold together and at any time with probability 1 − error.

    >>> tuple(round(bound, 2) for bound in bound_share(8, 8))
    (0.53, 1.0)
    """
    needed = -math.log(error / 2)
    low = edge(lambda share: evidence_above(share, found, count) >= needed) if found else 0.0
    high = 1 - edge(lambda share: evidence_below(1 - share, found, count) >= needed) if found < count else 1.0
    return low, high


def edge(excluded: Callable[[float], bool]) -> float:
    """Find the largest share up to which all shares are excluded, by halving."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def evidence_above(share: float, found: int, count: int) -> float:
    """Return the log evidence against "at most `share`": the alternatives are uniform from `share` to 1."""
    missed = count - found
    inside = special.betaincc(found + 1, missed + 1, share)
    whole = log(inside) + float(special.betaln(found + 1, missed + 1))
    return whole - math.log(1 - share) - log_ratio(share, found, missed)


def evidence_below(share: float, found: int, count: int) -> float:
    """Return the log evidence against "at least `share`": half on share 0, half uniform from 0 to `share`."""
    missed = count - found
    inside = special.betainc(found + 1, missed + 1, share)
    spread = log(inside) + float(special.betaln(found + 1, missed + 1)) - math.log(share)
    together = spread if found else math.log(1 + math.exp(spread))
    return together - math.log(2) - log_ratio(share, found, missed)


def log_ratio(share: float, found: int, missed: int) -> float:
    return found * math.log(share) + missed * math.log1p(-share)


def log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
