"""Recipes for thousands of images still train on a few dozen."""

from dataclasses import replace

from gradveil.training import BRIEF, PAPER, train_enough
from gradveil.training.enough import LEAST_STEPS


def test_small_data_is_used_whole_and_for_longer() -> None:
    small = train_enough(replace(PAPER, epochs=5, fraction=0.1), 48)
    assert small.fraction == 1
    assert small.epochs * small.steps_per_epoch(48) >= LEAST_STEPS
    assert (small.epochs - 1) * small.steps_per_epoch(48) < LEAST_STEPS


def test_middling_data_gives_a_thousand_images() -> None:
    assert train_enough(replace(PAPER, fraction=0.1), 4000).fraction == 0.25


def test_large_data_is_trained_as_before() -> None:
    semi = replace(PAPER, epochs=50, fraction=0.1)
    assert train_enough(semi, 50_000) == semi
    assert train_enough(BRIEF, 5000) == BRIEF
