"""Policies are held against no policy at all, image by image, with room for having been chosen among many."""

import pytest

from gradveil.search.baseline import Baseline, find_indistinct
from gradveil.search.outcome import ScoredCandidate

NONE = (0.50, 0.60, 0.70, 0.80, 0.55, 0.65, 0.75, 0.85)


def candidate(*scores: float) -> ScoredCandidate:
    return ScoredCandidate("3-1-7", "3-1-7", ("3-1-7",), scores, True, -1.2, "kept")


def shift(by: float, wobble: float = 0.0) -> ScoredCandidate:
    return candidate(*(value + by + wobble * (-1) ** place for place, value in enumerate(NONE)))


def test_a_clear_difference_is_better_than_none() -> None:
    found = Baseline(NONE, -1.1, compared=1500).describe(shift(-0.1, 0.005))
    assert found["against_none"] == pytest.approx(-0.1)
    assert found["better_than_none"] is True


def test_what_would_do_for_one_policy_does_not_for_the_best_of_many() -> None:
    weak = shift(-0.02, 0.02)
    assert Baseline(NONE, -1.1, compared=1).describe(weak)["better_than_none"] is True
    assert Baseline(NONE, -1.1, compared=1500).describe(weak)["better_than_none"] is False


def test_no_difference_and_a_worse_policy_are_not_better() -> None:
    baseline = Baseline(NONE, -1.1, compared=20)
    same, worse = (baseline.describe(one) for one in (shift(0.0, 0.01), shift(0.1, 0.01)))
    assert (same["better_than_none"], worse["better_than_none"]) == (False, False)


def test_few_images_cannot_tell() -> None:
    found = Baseline(NONE[:3], -1.1, compared=20).describe(candidate(0.1, 0.2, 0.3))
    assert found["better_than_none"] is None
    assert find_indistinct([{"policy": "3-1-7", **found}]) == ["3-1-7"]


def test_the_row_of_none_can_be_printed() -> None:
    row = Baseline(NONE, float("-inf"), compared=20).to_record()
    assert (row["policy"], row["accuracy"], row["images"]) == ("none", None, 8)
