"""How many images the sequential test of a share needs, and how often it errs: computed over all runs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gradveil.metrics import ShareTest

Answers = NDArray[np.int64]
LONGEST = 400
POWER = 0.9
SHARES = (0.0, 0.02, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
CODES = {None: 0, "above": 1, "below": -1}


@dataclass(frozen=True)
class Course:
    """What becomes of the test at one true share, within `LONGEST` images; `fixed` is the number of an exact test."""

    share: float
    above: float
    below: float
    images: float
    fixed: int | None


def tabulate(test: ShareTest, longest: int = LONGEST) -> Answers:
    """Write down every answer: 1 above, −1 below, 0 none yet; rows are counts, columns what was found."""
    table = np.zeros((longest + 1, longest + 1), dtype=np.int64)
    for count in range(1, longest + 1):
        table[count, : count + 1] = [CODES[test.answer(found, count)] for found in range(count + 1)]
    return table


def follow(table: Answers, share: float, fixed: int | None = None) -> Course:
    """Follow the probability of every count until the test answers."""
    going = np.zeros(table.shape[1])
    going[0] = 1.0
    above = below = images = 0.0
    for answers in table[1:]:
        images += going.sum()
        going[1:] = going[1:] * (1 - share) + going[:-1] * share
        going[0] *= 1 - share
        above += going[answers == 1].sum()
        below += going[answers == -1].sum()
        going[answers != 0] = 0.0
    return Course(share, float(above), float(below), float(images), fixed)


def plan_fixed(share: float, tested: float, error: float, power: float = POWER, longest: int = 2000) -> int | None:
    """Find the number of images with which an exact binomial test tells this share from the one tested."""
    if share == tested:
        return None
    for count in range(1, longest):
        found = np.arange(count + 1)
        tail = stats.binom.sf(found - 1, count, tested) if share > tested else stats.binom.cdf(found, count, tested)
        if stats.binom.pmf(found, count, share)[tail <= error].sum() >= power:
            return count
    return None


def follow_shares(test: ShareTest) -> list[Course]:
    """Follow the test at every share of the table."""
    table = tabulate(test)
    return [follow(table, share, plan_fixed(share, test.share, test.error_above)) for share in SHARES]
