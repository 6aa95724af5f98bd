"""Tasks and updates to attack: small ones that are quick, and real ones of the bundled sample."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import cast

import torch
from torch import nn

from gradveil import data
from gradveil.attacks import ATTACKS, Attack, CocktailParty, Ensemble, FederatedAveraging, GradientMatching
from gradveil.client import Client
from gradveil.data import DataSet
from gradveil.defences import parse_defences
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, Batch, LocalTraining, Task, Update

SIDE = 12
CLASSES = 10
POLICY = ("policy:3-1-7",)


def pictures(channels: int = 1, count: int = 16) -> Batch:
    """Cut real images to a small size; colour is three different ones on top of each other."""
    split = sample().test
    middle = split.images[: count * channels, :, 8 : 8 + SIDE, 8 : 8 + SIDE]
    return Batch(middle.reshape(count, channels, SIDE, SIDE), split.labels[:count])


def make_task(model_name: str = "lenet-relu", channels: int = 1, known: Sequence[str] = ()) -> Task:
    """Make a task of small images, with public ones; batch normalisation has seen one batch."""
    shape = (channels, SIDE, SIDE)
    mean, std = (0.3,) * channels, (0.35,) * channels
    model = build(model_name, shape, CLASSES, mean, std, generator(0, "model"))
    model.train()(pictures(channels).pixels())
    known_defences = parse_defences(list(known))
    return Task(model.eval(), CrossEntropy(), shape, CLASSES, mean, std, known_defences, pictures(channels))


def plain_task(model: nn.Module, classes: int = 4) -> Task:
    """Make a task around a model of grey images, without public ones."""
    return Task(model, CrossEntropy(), (1, SIDE, SIDE), classes, (0.5,), (0.5,))


def small_model(name: str = "lenet-relu") -> nn.Module:
    return build(name, (1, SIDE, SIDE), 4, (0.5,), (0.5,), generator(0)).eval()


def update_of(
    task: Task,
    batch: Batch,
    local: LocalTraining = ONE_GRADIENT,
    defences: Sequence[str] = (),
    share_labels: bool = True,
    seed: int = 0,
) -> Update:
    """Release the update of a client who has a model of its own."""
    model = copy.deepcopy(task.model)
    client = Client(model, local)
    chosen = parse_defences(list(defences))
    return client.update(model.state_dict(), batch, chosen, generator(seed, "client"), share_labels=share_labels)


def release(
    task: Task, image: int = 0, count: int = 1, local: LocalTraining = ONE_GRADIENT, share_labels: bool = True
) -> Update:
    """Release the update of some of the small images."""
    return update_of(task, pictures(task.shape[0]).take(slice(image, image + count)), local, share_labels=share_labels)


@cache
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


def sample_task(model: str = "lenet-relu", known: Sequence[str] = (), seed: int = 0) -> Task:
    """Make a task of the bundled sample, with 200 public images."""
    images = sample()
    network = build(model, images.shape, images.classes, images.mean, images.std, generator(seed, "model")).eval()
    public = images.train.take(torch.arange(200))
    return Task(
        network,
        CrossEntropy(),
        images.shape,
        images.classes,
        images.mean,
        images.std,
        parse_defences(list(known)),
        Batch(public.images, public.labels),
    )


def take(images: Sequence[int]) -> Batch:
    """Take images of the bundled sample's test part."""
    return Batch(sample().test.images[list(images)], sample().test.labels[list(images)])


def recipe(name: str) -> GradientMatching:
    return cast(GradientMatching, ATTACKS[name])


def policy_aware(steps: int) -> GradientMatching:
    """Look through the policy with fewer steps; the wrong draws go half way."""
    attack = recipe("policy-aware").with_steps(steps)
    return replace(attack, restarts=replace(attack.restarts, prune=(0.5,)))


def shorten(attack: Attack) -> Attack:
    """Keep an attack as it is but for the number of steps and restarts."""
    if isinstance(attack, Ensemble):
        return Ensemble({name: shorten(member) for name, member in attack.members.items()}, attack.choice)
    if isinstance(attack, FederatedAveraging):
        return replace(attack.with_steps(6), tried=4, kept=2, finalists=1)
    if isinstance(attack, CocktailParty):
        return attack.with_steps(6)
    if isinstance(attack, GradientMatching):
        short = attack.with_steps(2 if attack.gradients_per_step > 1 else 6)
        return replace(short, restarts=replace(short.restarts, count=min(2, short.restarts.count)))
    return attack
