"""Intervals over clusters cover what they promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.metrics import ClusterInterval, cluster_interval, mean_interval, paired_interval


@given(st.lists(st.tuples(st.floats(-50, 50), st.integers(0, 4)), min_size=1, max_size=40))
def test_the_interval_is_never_narrower_than_that_over_images(pairs: list[tuple[float, int]]) -> None:
    values, clusters = [value for value, _ in pairs], [cluster for _, cluster in pairs]
    found, plain = cluster_interval(values, clusters), mean_interval(values)
    assert (found.count, found.clusters) == (len(values), len(set(clusters)))
    if len(values) < 6:
        assert found.low is found.high is None
        assert "±" not in found.text()
        assert "no interval" in found.note
        return
    assert found.low is not None
    assert found.high is not None
    assert plain.high is not None
    assert found.high - found.mean >= (plain.high - plain.mean) * (1 - 1e-9)
    assert found.low <= found.mean <= found.high


def test_one_cluster_has_the_interval_of_its_values_and_says_so() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    found, plain = cluster_interval(values, ["seed 0"] * 6), mean_interval(values)
    assert (found.mean, found.low, found.high, found.median) == (plain.mean, plain.low, plain.high, 6.0)
    assert "one model" in found.note
    assert cluster_interval(values, [0, 0, 0, 1, 1, 1]).note == ""


def test_clusters_of_different_sizes_count_the_same() -> None:
    assert cluster_interval([0.0] * 9 + [10.0], [0] * 9 + [1]).mean == 5.0


def test_a_cluster_is_needed_for_each_value() -> None:
    with pytest.raises(ValueError, match="2 values and 1 clusters"):
        cluster_interval([1.0, 2.0], [0])


def test_pairs_are_compared_on_what_both_have() -> None:
    ours = {(seed, image): 10.0 * image + 2 + seed for seed in range(2) for image in range(4)}
    theirs = {(seed, image): 10.0 * image for seed in range(2) for image in range(1, 9)}
    found = paired_interval(ours, theirs)
    assert found is not None
    assert (found.mean, found.count, found.clusters) == (2.5, 6, 2)
    assert paired_interval({(0, 1): 1.0}, {(1, 1): 1.0}) is None


def covers(found: ClusterInterval, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


@pytest.mark.parametrize("between", [0.0, 0.5, 1.0, 2.0])
def test_coverage_where_models_differ(between: float) -> None:
    """Three models with four images each, 2,000 times; images differ by 1 dB, models by `between`."""
    numbers, runs = np.random.default_rng(17), 2000
    clusters = np.repeat(np.arange(3), 4).tolist()
    images = numbers.normal(size=(runs, 12))
    models = between * numbers.normal(size=(runs, 3)).repeat(4, axis=1)
    samples = (images + models).tolist()
    share = sum(covers(cluster_interval(sample, clusters), 0.0) for sample in samples) / runs
    # Three standard errors of the simulation are granted.
    assert share >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / runs)
    plain = sum(covers(cluster_interval(sample, [0] * 12), 0.0) for sample in samples) / runs
    # What takes all images for independent promises too much wherever models differ.
    assert plain < 0.9 or between < 1
