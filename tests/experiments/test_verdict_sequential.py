"""The exact course of the sequential test."""

import numpy as np
import pytest
from scipy import stats

from gradveil.experiments.verdict_sequential import follow, plan_fixed, tabulate
from gradveil.metrics import ShareTest

TEST = ShareTest(0.1)
TABLE = tabulate(TEST, 60)


def test_the_course_is_that_of_simulated_runs() -> None:
    runs = 4000
    found = (np.random.default_rng(0).random((runs, 60)) < 0.4).cumsum(1)
    answers = TABLE[np.arange(1, 61), found]
    stopped = np.where((answers != 0).any(1), (answers != 0).argmax(1) + 1, 60)
    course = follow(TABLE, 0.4)
    assert course.images == pytest.approx(stopped.mean(), abs=4 * stopped.std() / np.sqrt(runs))
    assert course.above == pytest.approx((answers.max(1) == 1).mean(), abs=0.03)


def test_without_a_find_it_takes_33_images() -> None:
    course = follow(TABLE, 0.0)
    assert (course.above, course.below, course.images) == (0.0, 1.0, 33.0)


def test_a_fixed_number_is_the_first_that_has_the_power() -> None:
    assert plan_fixed(0.1, 0.1, 0.05) is None
    assert plan_fixed(0.0, 0.1, 0.05) == 29
    count = plan_fixed(0.3, 0.1, 0.05)
    assert count is not None
    needed = next(found for found in range(count) if stats.binom.sf(found - 1, count, 0.1) <= 0.05)
    assert stats.binom.sf(needed - 1, count, 0.3) >= 0.9
    assert plan_fixed(0.11, 0.1, 0.05, longest=20) is None
