"""The sequential test of a share: its two errors hold however long it runs, and it saves images."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from gradveil.metrics import ShareTest, bound_share
from gradveil.metrics.sequential import evidence_above, evidence_below

SHARE = 0.1
RUNS, LONGEST = 10_000, 300
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CODES = {None: 0, "above": 1, "below": -1}
shares = st.floats(0.02, 0.6)
counts = st.integers(1, 120).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))


def tabulate(test: ShareTest, longest: int) -> Ints:
    """Write down every answer: 1 above, −1 below, 0 none yet; rows are counts, columns what was found."""
    table = np.zeros((longest + 1, longest + 1), dtype=np.int64)
    for count in range(1, longest + 1):
        table[count, : count + 1] = [CODES[test.answer(found, count)] for found in range(count + 1)]
    return table


@pytest.fixture(scope="module")
def table() -> Ints:
    return tabulate(ShareTest(SHARE), LONGEST)


def follow(table: Ints, share: float) -> tuple[float, float, float]:
    """Compute exactly, over all runs: the probability of the answer above, of below, and the mean number of images."""
    longest = len(table) - 1
    going = np.zeros(longest + 1)
    going[0] = 1.0
    above = below = mean = 0.0
    for count in range(1, longest + 1):
        mean += going.sum()
        going[1:] = going[1:] * (1 - share) + going[:-1] * share
        going[0] *= 1 - share
        above += going[table[count] == 1].sum()
        below += going[table[count] == -1].sum()
        going[table[count] != 0] = 0.0
    return above, below, mean


def fixed_count(share: float, error: float, power: float, tested: float = SHARE) -> int:
    """Find the number of images after which the exact binomial test decides this share with so much power."""
    for count in range(1, 2000):
        found = np.arange(count + 1)
        if share > tested:
            rejects = stats.binom.sf(found - 1, count, tested) <= error
        else:
            rejects = stats.binom.cdf(found, count, tested) <= error
        if stats.binom.pmf(found, count, share)[rejects].sum() >= power:
            return count
    raise AssertionError(f"no number of images decides a share of {share}")


def simulate(table: Ints, draws: NDArray[np.bool_]) -> Ints:
    """Stop every run at its first answer: the stop at which an answer is most often wrong."""
    found = draws.cumsum(1)
    answers: Ints = table[np.arange(1, draws.shape[1] + 1), found]
    first = (answers != 0).argmax(1)
    stopped: Ints = answers[np.arange(len(draws)), first]
    return stopped


@pytest.mark.parametrize(("above", "below"), [(0.05, 0.05), (0.05 / 12, 0.05), (0.01, 0.1)])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_both_errors_hold_exactly_at_the_share_tested_and_beyond_it(share: float, above: float, below: float) -> None:
    answers = tabulate(ShareTest(share, above, below), 150)
    for true in (0.0, share / 2, share):
        assert follow(answers, true)[0] <= above
    for true in (share, (1 + share) / 2, 1.0):
        assert follow(answers, true)[1] <= below


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.08, 0.1, 0.12, 0.2, 0.5])
def test_10000_simulated_runs_are_covered(table: Ints, share: float) -> None:
    stopped = simulate(table, np.random.default_rng(1).random((RUNS, LONGEST)) < share)
    allowed = stats.binom.ppf(0.9999, RUNS, 0.05)
    if share <= SHARE:
        assert (stopped == 1).sum() <= allowed
    if share >= SHARE:
        assert (stopped == -1).sum() <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("answer", [1, -1])
def test_images_that_depend_on_earlier_ones_are_covered(table: Ints, answer: int) -> None:
    """The share of each next image may depend on all before it, as long as it stays on one side of the share tested.

    Here an adversary jumps between an extreme share and the one tested, whenever the count so far is promising.
    """
    source = np.random.default_rng(2)
    found = np.zeros(RUNS, dtype=np.int64)
    wrong = np.zeros(RUNS, dtype=bool)
    for count in range(1, LONGEST + 1):
        promising = answer * (found - SHARE * (count - 1)) > 0
        other = SHARE / 3 if answer == 1 else 3 * SHARE
        found += source.random(RUNS) < np.where(promising, SHARE, other if count % 2 else SHARE)
        wrong |= table[count, found] == answer
    assert wrong.sum() <= stats.binom.ppf(0.9999, RUNS, 0.05)


@pytest.mark.slow
def test_bounds_cover_at_every_look_at_once() -> None:
    longest = 100
    bounds = np.array([[(0.0, 1.0)] * (longest + 1)] * (longest + 1))
    for count in range(1, longest + 1):
        bounds[count, : count + 1] = [bound_share(found, count) for found in range(count + 1)]
    counts = np.arange(1, longest + 1)
    for share in (0.02, 0.1, 0.5, 0.9):
        found = (np.random.default_rng(3).random((RUNS, longest)) < share).cumsum(1)
        low, high = bounds[counts, found].transpose(2, 0, 1)
        missed = ((share < low) | (share > high)).any(1).sum()
        assert missed <= stats.binom.ppf(0.9999, RUNS, 0.05)


def test_an_interval_of_a_fixed_count_does_not_hold_at_every_look() -> None:
    """Why the sequential bounds are needed: looked at after every image, exact intervals miss far too often."""
    longest = 60
    found = (np.random.default_rng(4).random((RUNS, longest)) < SHARE).cumsum(1)
    missed = np.zeros(RUNS, dtype=bool)
    for count in range(1, longest + 1):
        number = np.arange(count + 1)
        # An exact interval leaves the share out if one of the two tails is below 2.5%.
        tails = stats.binom.sf(number - 1, count, SHARE), stats.binom.cdf(number, count, SHARE)
        missed |= (np.minimum(*tails) < 0.025)[found[:, count - 1]]
    assert missed.mean() > 0.08


@pytest.mark.parametrize("share", [0.02, 0.03, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_it_needs_fewer_images_than_a_fixed_count_planned_for_that_very_share(table: Ints, share: float) -> None:
    above, below, mean = follow(table, share)
    assert (above if share > SHARE else below) >= 0.9
    assert mean < fixed_count(share, 0.05, 0.9)


def test_it_saves_a_third_and_more_where_the_share_is_not_known_before(table: Ints) -> None:
    """A fixed number must suffice for the smallest share that is to be found; leaks are mostly far above it."""
    planned = fixed_count(0.3, 0.05, 0.9)
    means = {share: follow(table, share)[2] for share in (0.4, 0.5, 0.7, 0.9, 1.0)}
    assert all(mean < 0.67 * planned for mean in means.values())
    assert means[0.7] < planned / 5


def test_where_nothing_or_everything_is_found_it_does_not_gain(table: Ints) -> None:
    """A fixed number planned for exactly these shares is as good or a little better: what looking at any time costs."""
    assert fixed_count(0.0, 0.05, 0.9) == 29
    assert 29 < follow(table, 0.0)[2] <= 33
    assert follow(table, 1.0)[2] >= fixed_count(1.0, 0.05, 0.9)


@given(shares, counts)
def test_no_count_speaks_for_both_answers(share: float, seen: tuple[int, int]) -> None:
    needed = -math.log(0.49)
    assert not (evidence_above(share, *seen) >= needed and evidence_below(share, *seen) >= needed)


@given(shares, counts)
def test_one_more_found_image_is_evidence_for_above_and_against_below(share: float, seen: tuple[int, int]) -> None:
    found, count = seen
    if found < count:
        assert evidence_above(share, found + 1, count) >= evidence_above(share, found, count)
        assert evidence_below(share, found + 1, count) <= evidence_below(share, found, count)


@given(counts, st.floats(0.01, 0.2))
def test_bounds_hold_the_share_that_was_found_and_agree_with_the_test(seen: tuple[int, int], error: float) -> None:
    low, high = bound_share(*seen, error)
    assert 0 <= low <= seen[0] / seen[1] <= high <= 1
    for tested in (0.05, 0.1, 0.4):
        answer = ShareTest(tested, error / 2, error / 2).answer(*seen)
        assert (answer == "above") == (low > tested)
        assert (answer == "below") == (high < tested)


@given(counts)
def test_a_smaller_error_gives_wider_bounds(seen: tuple[int, int]) -> None:
    narrow, wide = bound_share(*seen, 0.2), bound_share(*seen, 0.01)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


def test_evidence_of_long_runs_stays_finite() -> None:
    for found in (0, 1, 5_000, 9_999, 10_000):
        assert not math.isnan(evidence_above(0.1, found, 10_000))
        assert not math.isnan(evidence_below(0.1, found, 10_000))
    assert ShareTest(0.1).answer(10_000, 10_000) == "above"
    assert ShareTest(0.1).answer(0, 10_000) == "below"
