"""Attacks that are known to work must work here, on real images; a defence may only be trusted next to these."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil import data
from gradveil.attacks import ATTACKS, GradientMatching, find_labels, restore_counts
from gradveil.client import local_update
from gradveil.data import DataSet
from gradveil.defences import defend_update, parse_arm
from gradveil.metrics import assign, choose_floor, make_guesses, mean_interval, psnr
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, LocalSteps, Reconstruction, Task, Update


@cache
def sample() -> DataSet:
    return data.load("fashion-mnist-sample")


def make_task(model: str, seed: int = 0) -> Task:
    images = sample()
    network = build(model, images.shape, images.classes, images.mean, images.std, generator(seed, "model")).eval()
    return Task(network, F.cross_entropy, images.shape, images.classes, images.mean, images.std)


def take(images: Sequence[int]) -> Batch:
    return Batch(sample().test.images[list(images)], sample().test.labels[list(images)])


def recipe(name: str) -> GradientMatching:
    return cast(GradientMatching, ATTACKS[name])


def release(task: Task, images: Sequence[int], local: LocalSteps | None = None, labels: bool = True) -> Update:
    return local_update(task.model, task.loss, take(images), local, share_labels=labels)


def attack_each(attack: GradientMatching, task: Task, updates: Sequence[Update], seed: int = 0) -> list[Reconstruction]:
    return attack.attack_many(task, updates, [generator(seed, "attack", place) for place in range(len(updates))])


@cache
def chance(count: int = 2000) -> Tensor:
    """Give the best guess without a gradient for each class, from training images."""
    train = sample().train.take(torch.arange(count))
    pixels = Batch(train.images, train.labels).pixels()
    guesses = make_guesses([(pixels, train.labels)], sample().classes, labels_known=True)
    return choose_floor(guesses, pixels[:256], train.labels[:256], psnr).images


def advantages(rebuilt: Tensor, batch: Batch) -> list[float]:
    gained: list[float] = (psnr(rebuilt, batch.pixels()) - psnr(chance()[batch.labels], batch.pixels())).tolist()
    return gained


@pytest.mark.slow
def test_deep_leakage_rebuilds_images_and_labels_of_an_untrained_lenet() -> None:
    scores, labels = [], []
    for seed in (0, 1):
        task = make_task("lenet", seed)
        updates = [release(task, [image], labels=False) for image in range(8)]
        found = attack_each(replace(recipe("dlg"), steps=20, restarts=3, together=24), task, updates, seed)
        scores += [float(psnr(one.images, take([image]).pixels())) for image, one in enumerate(found)]
        labels += [int(one.labels) == int(take([image]).labels) for image, one in enumerate(found)]
    assert sum(scores) / len(scores) >= 25
    assert sum(labels) / len(labels) >= 0.9


def test_one_image_is_read_off_a_linear_layer() -> None:
    task = make_task("mlp")
    for image in range(8):
        found = ATTACKS["analytic"](task, release(task, [image]), generator(0))
        assert float(psnr(found.images, take([image]).pixels())) >= 50
        assert found.matching_loss < 1e-4


def test_images_of_a_batch_are_read_off_where_rows_see_them_alone() -> None:
    task = make_task("mlp")
    batch = take(range(4))
    found = ATTACKS["analytic"](task, release(task, range(4)), generator(0))
    rebuilt = found.images[assign(found.images, batch.pixels())]
    assert int((psnr(rebuilt, batch.pixels()) >= 40).sum()) >= 1


@pytest.mark.slow
def test_inverting_gradients_sees_through_an_untrained_convnet() -> None:
    task = make_task("convnet-16")
    # No setting was chosen on these images (docs/attacks.md).
    images = range(4, 8)
    found = attack_each(recipe("fast"), task, [release(task, [image]) for image in images])
    gained = advantages(torch.cat([one.images for one in found]), take(images))
    assert sum(gained) / len(gained) >= 6


@pytest.mark.parametrize("model", ["lenet-relu", "convnet-16"])
def test_labels_of_a_batch_are_restored_with_their_repeats(model: str) -> None:
    task = make_task(model)
    exact = 0
    for trial in range(20):
        # Draws from four classes only, so that most batches of 8 hold repeats.
        few = (sample().test.labels < 4).nonzero().flatten()
        images = few[torch.randperm(len(few), generator=generator(trial, "batch"))[:8]].tolist()
        hidden = release(task, images, labels=False)
        true = torch.bincount(take(images).labels, minlength=sample().classes)
        exact += torch.equal(restore_counts(task, hidden), true)
        assert int(true.max()) > 1
    assert exact >= 18


def test_labels_of_single_images_are_read() -> None:
    task = make_task("lenet-relu")
    for image in range(20):
        assert torch.equal(find_labels(task, release(task, [image], labels=False)), take([image]).labels)


@pytest.mark.slow
def test_a_weight_change_of_five_steps_gives_images_away() -> None:
    task = make_task("lenet-relu")
    images = range(12)
    local = LocalSteps(steps=5, learning_rate=0.01, batch_size=1)
    attack = replace(recipe("fast"), steps=120)
    found = attack_each(attack, task, [release(task, [image], local) for image in images])
    gained = mean_interval(advantages(torch.cat([one.images for one in found]), take(images)))
    assert gained.low is not None
    assert gained.low > 1


@pytest.mark.slow
def test_batches_of_eight_give_images_away() -> None:
    task = make_task("lenet-relu")
    batches = [range(8), range(8, 16)]
    found = attack_each(recipe("fast"), task, [release(task, images) for images in batches])
    gained: list[float] = []
    for images, one in zip(batches, found, strict=True):
        batch = take(images)
        gained += advantages(one.images[assign(one.images, batch.pixels())], batch)
    low = mean_interval(gained).low
    assert low is not None
    assert low > 1


@pytest.mark.parametrize("defence", ["prune:95", "sign"])
def test_who_knows_how_updates_are_released_sees_through_it(defence: str) -> None:
    images = range(4)
    arm, task = parse_arm(f"{defence},no-base"), make_task("lenet-relu")
    updates = [defend_update(arm.defences, task.model, task.loss, take([image]), generator(0)) for image in images]
    told = replace(task, known_defences=tuple(map(str, arm.defences)))
    gains = []
    for knowledge in (task, told):
        found = attack_each(recipe("fast"), knowledge, updates)
        gains.append(advantages(torch.cat([one.images for one in found]), take(images)))
    assert mean_interval(gains[1]).mean > 6
    assert min(after - before for before, after in zip(*gains, strict=True)) > 3
