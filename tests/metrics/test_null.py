"""The null of a score: limits, p-values and their correction are passed as rarely as they say, whatever the shape."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from gradveil.metrics import Null, holm, limit_of, standardise

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Values]


def draw_mixture(source: np.random.Generator, count: int) -> Values:
    """Draw mostly low scores, and a few of quite another kind far above."""
    return np.where(source.random(count) < 0.005, source.normal(6, 1, count), source.normal(0, 1, count))


SHAPES: dict[str, Draw] = {
    "normal": lambda source, count: source.normal(size=count),
    "skewed": lambda source, count: source.lognormal(size=count),
    "heavy": lambda source, count: source.standard_t(2, size=count),
    "bounded": lambda source, count: source.random(count),
    "coarse": lambda source, count: np.round(source.normal(size=count), 1),
    "mixed": draw_mixture,
}
finite = st.floats(-100, 100)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", [0.05, 0.001, 0.0002])
def test_a_p_value_of_2000_scores_is_passed_as_rarely_as_it_says(shape: str, level: float) -> None:
    source, runs = np.random.default_rng(0), 400
    fresh = np.sort(SHAPES[shape](source, 100_000))
    rates = []
    for _ in range(runs):
        null = Null.of(SHAPES[shape](source, 2000).tolist())
        # The p-value falls with the score, so the scores that pass are those from one place on.
        low, high = 0, len(fresh)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if null.p_value(fresh[middle]) <= level else (middle + 1, high)
        rates.append(1 - low / len(fresh))
    spread = 4 * float(np.std(rates)) / np.sqrt(runs) + 4 * np.sqrt(level / len(fresh))
    assert np.mean(rates) <= level + spread
    if level >= 0.001 and shape != "coarse":
        assert np.mean(rates) > 0.7 * level


@given(st.lists(finite, min_size=1, max_size=50), finite)
def test_a_p_value_counts_the_score_itself(scores: list[float], score: float) -> None:
    null = Null.of(scores)
    assert null.p_value(score) == (sum(value >= score for value in scores) + 1) / (len(scores) + 1)
    assert null.p_value(max(scores) + 1) == 1 / (len(scores) + 1)
    assert null.p_value(min(scores)) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("count", "error"), [(199, 0.02), (99, 0.02), (9, 0.1), (49, 0.5)])
def test_a_limit_is_exact_for_exchangeable_scores(shape: str, count: int, error: float) -> None:
    """Every one of n + 1 scores is the odd one out equally often, so counting all of them gives the rate exactly."""
    for seed in range(5):
        scores = SHAPES[shape](np.random.default_rng(seed), count + 1).tolist()
        passed = sum(
            score > limit_of(scores[:place] + scores[place + 1 :], error) for place, score in enumerate(scores)
        )
        assert passed <= error * (count + 1)
        if shape != "coarse":
            assert passed == int(error * (count + 1))


@given(st.lists(finite, min_size=1, max_size=30), st.floats(0.001, 0.5))
def test_with_too_few_scores_the_limit_is_the_greatest(scores: list[float], error: float) -> None:
    limit = limit_of(scores, error)
    assert limit in scores
    if error * (len(scores) + 1) < 2:
        assert limit == max(scores)


@given(st.floats(-50, 50), st.lists(finite, min_size=9, max_size=40), st.floats(0.1, 10), finite)
def test_a_common_scale_forgets_level_and_spread(score: float, null: list[float], factor: float, shift: float) -> None:
    plain, others = standardise(score, null)
    # Where there is no spread to speak of, a least unit stands for it.
    if max(map(abs, [plain, *others])) > 1e6 or np.quantile(null, 0.9) - np.median(null) < 1e-6:
        return
    moved, moved_others = standardise(factor * score + shift, [factor * value + shift for value in null])
    assert moved == pytest.approx(plain, abs=1e-3)
    assert moved_others == pytest.approx(others, abs=1e-3)
    order = np.argsort([score, *null], kind="stable")
    assert (np.diff(np.array([plain, *others])[order]) >= -1e-9).all()


def test_a_null_without_spread_has_a_scale_nevertheless() -> None:
    score, null = standardise(1.0, [1.0] * 20)
    assert (score, set(null)) == (0.0, {0.0})


def draw_image(source: np.random.Generator, cells: int, candidates: int, same: float) -> Values:
    """Draw the scores of a true image and its candidates in several cells, each with its own level and spread."""
    names = list(SHAPES)
    common = SHAPES[names[source.integers(len(names))]](source, candidates + 1)
    own = source.normal(size=(cells, candidates + 1))
    level, spread = source.uniform(-3, 3, (cells, 1)), source.uniform(0.5, 2, (cells, 1))
    scores: Values = level + spread * (same * common + (1 - same) * own)
    return scores


@pytest.mark.slow
@pytest.mark.parametrize("same", [0.0, 0.9])
@pytest.mark.parametrize(("images", "cells", "candidates"), [(8, 4, 200), (8, 12, 200), (20, 4, 60)])
def test_an_audit_without_a_leak_has_a_hit_in_at_most_5_percent(
    images: int, cells: int, candidates: int, same: float
) -> None:
    """Images have nulls of different shapes, and cells share the images: counted together, the error still holds."""
    source, runs, wrong = np.random.default_rng(5), 400, 0
    for _ in range(runs):
        scores = [draw_image(source, cells, candidates, same) for _ in range(images)]
        scaled = [standardise(cell[0], cell[1:].tolist()) for one in scores for cell in one]
        null = Null.of([value for _, others in scaled for value in others])
        wrong += any(holm([null.p_value(score) for score, _ in scaled], 0.05))
    assert wrong <= stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize("together", [0.0, 0.8])
def test_holm_controls_the_error_of_the_family(together: float) -> None:
    """Some hypotheses are false and always rejected; the p-values of the others may depend on one another."""
    source, runs, family = np.random.default_rng(6), 4000, 30
    common = source.normal(size=(runs, 1))
    scores = np.sqrt(together) * common + np.sqrt(1 - together) * source.normal(size=(runs, family))
    p_values = stats.norm.sf(scores)
    p_values[:, :10] = 1e-6
    rejected = np.array([holm(row.tolist(), 0.05) for row in p_values])
    assert rejected[:, :10].all()
    assert rejected[:, 10:].any(1).sum() <= stats.binom.ppf(0.999, runs, 0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.01, 0.2))
def test_holm_rejects_all_that_bonferroni_rejects_and_a_front_of_the_order(p_values: list[float], error: float) -> None:
    rejected = holm(p_values, error)
    plain = [value <= error / len(p_values) for value in p_values]
    assert all(mine or not theirs for mine, theirs in zip(rejected, plain, strict=True))
    kept = [value for value, mine in zip(p_values, rejected, strict=True) if not mine]
    taken = [value for value, mine in zip(p_values, rejected, strict=True) if mine]
    assert not taken or not kept or max(taken) <= min(kept)


def test_holm_of_nothing_rejects_nothing() -> None:
    assert holm([], 0.05) == []
