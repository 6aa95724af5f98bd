"""Intervals cover what they should."""

import numpy as np
import pytest
from scipy import stats

from gradveil.metrics import mean_interval, rate_interval


def test_agrees_with_scipy() -> None:
    values = np.random.default_rng(0).normal(3, 2, 12)
    interval = mean_interval(values.tolist())
    low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert (interval.mean, interval.low, interval.high) == pytest.approx((values.mean(), low, high))
    assert interval.std == pytest.approx(values.std(ddof=1))


def test_covers_the_truth_as_often_as_it_says() -> None:
    source = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        interval = mean_interval(source.normal(0, 1, 8).tolist())
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low < 0 < interval.high
    assert 0.93 < hits / 2000 < 0.97


def test_one_value_has_no_spread() -> None:
    interval = mean_interval([4.0])
    assert (interval.mean, interval.low, interval.high, interval.std, interval.count) == (4.0, None, None, None, 1)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="there are no values"):
        mean_interval([])


def test_fewer_than_six_values_have_no_interval() -> None:
    few, enough = mean_interval([1.0, 2.0, 3.0, 6.0, 3.0]), mean_interval([1.0, 2.0, 3.0, 6.0, 3.0, 3.0])
    assert (few.low, few.high, few.median) == (None, None, 3.0)
    assert few.std is not None
    assert enough.low is not None
    assert mean_interval([1.0, 2.0], least=2).low is not None


def test_a_rate_is_bounded_exactly() -> None:
    low, high = rate_interval(3, 20)
    assert stats.binom.sf(2, 20, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 20, high) == pytest.approx(0.025)
    assert rate_interval(20, 20)[1] == 1.0
