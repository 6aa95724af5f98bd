"""Attacks that are known to work must work here, on real images; a defence may only be trusted next to these."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from gradveil.attacks import GradientMatching, Restarts
from gradveil.attacks.distances import l1
from gradveil.client import Client
from gradveil.defences import parse_defences
from gradveil.metrics import assign, choose_floor, make_guesses, mean_interval, psnr
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Reconstruction, Task, Update
from tests.attacks.scenes import recipe, sample, sample_task, take, update_of


def attack_each(attack: GradientMatching, task: Task, updates: Sequence[Update], seed: int = 0) -> list[Reconstruction]:
    return attack.attack_many(task, updates, [generator(seed, "attack", place) for place in range(len(updates))])


@cache
def chance(count: int = 2000) -> Tensor:
    """Return the best guess without a gradient for each class, from training images."""
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
        task = sample_task("lenet", seed=seed)
        updates = [update_of(task, take([image]), share_labels=False) for image in range(8)]
        results = attack_each(
            replace(recipe("dlg").with_steps(20), restarts=Restarts(3, together=24)), task, updates, seed
        )
        scores += [float(psnr(one.images, take([image]).pixels())) for image, one in enumerate(results)]
        labels += [int(one.labels) == int(take([image]).labels) for image, one in enumerate(results)]
    assert sum(scores) / len(scores) >= 25
    assert sum(labels) / len(labels) >= 0.9


@pytest.mark.slow
def test_inverting_gradients_sees_through_an_untrained_convnet() -> None:
    task = sample_task("convnet-16")
    # No setting was chosen on these images (docs/attack-results.md).
    images = range(4, 8)
    results = attack_each(recipe("fast"), task, [update_of(task, take([image])) for image in images])
    gained = advantages(torch.cat([one.images for one in results]), take(images))
    assert sum(gained) / len(gained) >= 6


@pytest.mark.slow
def test_a_weight_change_of_five_steps_gives_images_away() -> None:
    task = sample_task()
    images = range(12)
    local = LocalTraining(steps=5, learning_rate=0.01, batch_size=1)
    attack = recipe("fast").with_steps(120)
    results = attack_each(attack, task, [update_of(task, take([image]), local) for image in images])
    gained = mean_interval(advantages(torch.cat([one.images for one in results]), take(images)))
    assert gained.low is not None
    assert gained.low > 1


@pytest.mark.slow
def test_batches_of_eight_give_images_away() -> None:
    task = sample_task()
    batches = [range(8), range(8, 16)]
    results = attack_each(recipe("fast"), task, [update_of(task, take(images)) for images in batches])
    gained: list[float] = []
    for images, one in zip(batches, results, strict=True):
        batch = take(images)
        gained += advantages(one.images[assign(one.images, batch.pixels())], batch)
    low = mean_interval(gained).low
    assert low is not None
    assert low > 1


@pytest.mark.parametrize("defence", ["prune:95", "sign"])
def test_who_knows_how_updates_are_released_sees_through_it(defence: str) -> None:
    images = range(4)
    task = sample_task()
    updates = [update_of(task, take([image]), defences=[defence]) for image in images]
    told = replace(task, known_defences=parse_defences([defence]))
    gains = []
    for knowledge in (task, told):
        results = attack_each(recipe("fast"), knowledge, updates)
        gains.append(advantages(torch.cat([one.images for one in results]), take(images)))
    assert mean_interval(gains[1]).mean > 6
    assert min(after - before for before, after in zip(*gains, strict=True)) > 3


def gains_of(task: Task, defence: str, attack: GradientMatching, images: range, steps_to: int = 0) -> list[list[float]]:
    """Attack under a defence, not told and told; return the advantages at what was fed. `steps_to` swaps updates."""
    known = parse_defences([defence])
    if "model" in known[0].hooks:
        task = replace(task, model=known[0].model(task.model, generator(0)).eval())
    released = [update_of(task, take([image + steps_to]), defences=[defence], seed=image) for image in images]
    batch = take(images)
    gains = []
    for knowledge in (task, replace(task, known_defences=known)):
        results = attack_each(attack, knowledge, released)
        gains.append(advantages(torch.cat([one.images for one in results]), batch))
    return gains


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defence", "least"), [("percentile", 3), ("oasis", 3), ("precode:width=64", 3), ("clip:0.1", 3), ("quantise:2", 1)]
)
def test_told_of_a_defence_the_attacker_sees_more(defence: str, least: float) -> None:
    """The cosine does not see a clipped length, so that the sum of absolute differences stands for those that do."""
    attack = replace(recipe("fast"), distance=l1, second_stage=None) if defence == "clip:0.1" else recipe("fast")
    untold, told = gains_of(sample_task(), defence, attack, range(4))
    assert mean_interval(told).mean > 1
    assert mean_interval([after - before for before, after in zip(untold, told, strict=True)]).mean > least
    # Ten images on, the updates are those of others.
    _, wrong = gains_of(sample_task(), defence, attack, range(4), 10)
    assert mean_interval(wrong).mean < 0


@pytest.mark.slow
def test_told_that_pixels_are_flipped_the_attacker_rebuilds_what_was_fed() -> None:
    known = parse_defences(["instahide"])
    task, others = sample_task(), sample().train.take(torch.arange(200, 300))
    scores = []
    client = Client(task.model, others=Batch(others.images, others.labels))
    fed: list[Tensor] = []
    updates = [
        client.update(
            task.model.state_dict(),
            take([image]),
            known,
            generator(image),
            watch=lambda step: fed.append(step.fed.pixels()),
        )
        for image in range(4)
    ]
    for knowledge in (task, replace(task, known_defences=known)):
        results = attack_each(recipe("fast"), knowledge, updates)
        scores.append(psnr(torch.cat([one.images for one in results]), torch.cat(fed)))
    assert float((scores[1] - scores[0]).min()) > 5


@pytest.mark.slow
def test_modern_rebuilds_its_own_image_and_no_other() -> None:
    task, images = sample_task(), range(50, 56)
    updates = [update_of(task, take([image])) for image in images]
    results = recipe("modern").with_steps(300).attack_many(task, updates, [generator(0, image) for image in images])
    rebuilt, true = torch.cat([one.images for one in results]), take(images).pixels()
    own, others = psnr(rebuilt, true), psnr(rebuilt, true.roll(1, 0))
    assert mean_interval((own - others).tolist()).low > 3  # type: ignore[operator]
    assert float(own.mean()) > 15
