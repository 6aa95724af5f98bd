"""Attackers that look at no update."""

from typing import get_args

import pytest
import torch

from gradveil.experiments.blind_guess import BlindGuess, Guess
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, Batch, Task, Update

PUBLIC = Batch(torch.rand(9, 1, 8, 8, generator=generator(0, "public")), torch.arange(9) % 3)


def attack(guess: Guess, labels: torch.Tensor | None, images: int = 3, scale: float = 1.0) -> torch.Tensor:
    model = torch.nn.Linear(2, 2)
    task = Task(model, ONE_GRADIENT.loss, (1, 8, 8), 3, (0.5,), (0.2,), (), PUBLIC)
    update = Update({"weight": torch.full((2, 2), scale)}, images, ONE_GRADIENT, labels)
    return BlindGuess(guess)(task, update, generator(1, "attack")).images


@pytest.mark.parametrize("guess", get_args(Guess))
def test_the_update_changes_nothing(guess: Guess) -> None:
    labels = torch.tensor([2, 0, 1])
    assert torch.equal(attack(guess, labels), attack(guess, labels, scale=9.0))


def test_each_guess_is_what_it_is_called() -> None:
    labels = torch.tensor([2, 0, 1])
    for label, colour, mean, picture in zip(
        labels, *(attack(guess, labels) for guess in ("mean colour", "mean image", "picture")), strict=True
    ):
        members = PUBLIC.images[PUBLIC.labels == label]
        assert torch.allclose(colour, members.mean().expand_as(colour))
        assert torch.allclose(mean, members.mean(0))
        assert any(torch.equal(picture, member) for member in members)


def test_hidden_labels_are_drawn() -> None:
    assert attack("picture", None, images=5).shape == (5, 1, 8, 8)
