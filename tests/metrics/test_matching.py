"""Pairing rebuilt images with true ones."""

import pytest
import torch

from gradveil.metrics import assign
from gradveil.rng import generator


def test_a_shuffle_is_undone_even_with_noise() -> None:
    targets = torch.rand(100, 1, 8, 8, generator=generator(0))
    order = torch.randperm(100, generator=generator(1))
    guesses = (targets + 0.05 * torch.randn(targets.shape, generator=generator(2)))[order]
    assert torch.equal(order[assign(guesses, targets)], torch.arange(100))


def test_every_guess_is_used_once_and_the_total_decides() -> None:
    targets = torch.tensor([0.5, 0.6]).view(2, 1, 1, 1)
    guesses = torch.tensor([0.55, 0.9]).view(2, 1, 1, 1)
    # Both targets are nearest to the first guess; the pairing that costs less in total gives it to the first.
    assert assign(guesses, targets).tolist() == [0, 1]


def test_a_guess_that_is_not_finite_is_paired_last() -> None:
    targets = torch.tensor([0.1, 0.9]).view(2, 1, 1, 1)
    guesses = torch.tensor([float("nan"), 0.1]).view(2, 1, 1, 1)
    assert assign(guesses, targets).tolist() == [1, 0]


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="for targets"):
        assign(torch.zeros(2, 1, 2, 2), torch.zeros(3, 1, 2, 2))
