"""Whoever is told of a defence does no worse than who is not, at T(x) and at x, each on its own."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from gradveil.attacks import ATTACKS, Attack, Ensemble, LowestLoss
from gradveil.attacks.examples import class_means
from gradveil.attacks.ranking import transformed_of
from gradveil.client import Client
from gradveil.defences import parse_arm
from gradveil.metrics import align, psnr
from gradveil.rng import generator
from gradveil.training import BRIEF, train
from gradveil.types import Batch, Reconstruction, Task
from tests.attacks.scenes import sample, sample_task, take

ARMS = (
    *("none", "crop-flip", "policy:3-1-7,no-base", "policy:43-18-18,no-base", "policy:3-1-7+43-18-18,no-base"),
    *("gaussian:1e-2", "prune:95"),
)
PHASES = ("init", "trained")
IMAGES = range(40, 46)
NOISE = 1.0
"""Six images leave the mean of a difference open by about so many decibels."""


@cache
def weights(phase: str) -> dict[str, Tensor]:
    task = sample_task()
    if phase == "trained":
        train(task.model, sample(), replace(BRIEF, epochs=1), defences=[], seed=0, phases=("final",))
    return {name: tensor.clone() for name, tensor in task.model.state_dict().items()}


def scores(results: list[Reconstruction], fed: Tensor, batch: Batch) -> Tensor:
    """Score results at T(x) and, aligned as audits do, at x: 2×N."""
    guesses = torch.cat([transformed_of(one) for one in results])
    train_split = sample().train
    means = class_means(Batch(train_split.images, train_split.labels), 10).view(-1, *batch.images.shape[1:])
    aligned = align(torch.cat([one.images for one in results]), batch.pixels(), means[batch.labels]).psnr
    return torch.stack([psnr(guesses, fed), aligned.float()])


def gain_of_being_told(attack: Attack, arm: str, phase: str) -> Tensor:
    """Attack the same updates told and not told; return the differences of the two scores, 2×N."""
    defences = parse_arm(arm).defences
    task: Task = sample_task()
    task.model.load_state_dict(weights(phase))
    client, batch = Client(task.model), take(IMAGES)
    fed: list[Tensor] = []
    updates = [
        client.update(
            task.model.state_dict(),
            take([image]),
            defences,
            generator(image, "told"),
            watch=lambda step: fed.append(step.fed.pixels()),
        )
        for image in IMAGES
    ]
    told, untold = (
        attack.attack_many(replace(task, known_defences=known), updates, [generator(1, image) for image in IMAGES])
        for known in (tuple(defences), ())
    )
    return scores(told, torch.cat(fed), batch) - scores(untold, torch.cat(fed), batch)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_standard_does_no_worse_if_it_is_told(phase: str) -> None:
    attack = ATTACKS["standard"].with_budget(30)
    gains = {arm: gain_of_being_told(attack, arm, phase).mean(1) for arm in ARMS}
    every = torch.stack(list(gains.values()))
    assert (every.amin(0) > -NOISE).all(), gains
    assert (every.mean(0) > -NOISE / len(ARMS) ** 0.5).all(), gains


@pytest.mark.slow
def test_it_shows_if_being_told_makes_an_attacker_weaker() -> None:
    """Version 5 took the picture of x from whoever looks through the policy, however well others matched."""
    standard = ATTACKS["standard"].with_budget(60)
    assert isinstance(standard, Ensemble)
    members = {name: standard.members[name] for name in ("levelled", "policy-aware")}
    attack = Ensemble(members, LowestLoss(looks_through=True))
    gains = gain_of_being_told(attack, "policy:3-1-7+43-18-18,no-base", "trained").mean(1)
    assert gains[1] < -NOISE, gains
