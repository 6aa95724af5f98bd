"""Learning to invert: what it must reach, what it must not, and when it learns anew."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gradveil.attacks import Learned, learned
from gradveil.attacks.examples import class_means
from gradveil.defences import parse_defences
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.metrics import assign, mean_interval, psnr
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Task
from tests.attacks.scenes import make_task, release, sample, sample_task, take, update_of

SMALL = Learned(draws=1, epochs=1, width=16)


def attack(task: Task, images: Sequence[int], defences: Sequence[str] = ()) -> Tensor:
    updates = [update_of(task, take([image]), defences=defences, seed=image) for image in images]
    told = replace(task, known_defences=parse_defences(list(defences)))
    results = Learned(epochs=0).attack_many(told, updates, [generator(0, image) for image in images])
    return torch.cat([one.images for one in results])


def share_picked_out(rebuilt: Tensor, batch: Batch) -> float:
    """Return how often the true image is the nearest of all of its class."""
    found = 0
    for picture, own, label in zip(rebuilt, batch.pixels(), batch.labels, strict=True):
        crowd = batch.pixels()[batch.labels == label]
        found += bool((picture - own).square().mean() <= (picture - crowd).square().mean((1, 2, 3)).min())
    return found / len(batch)


@pytest.mark.slow
def test_an_untrained_network_gives_images_away_and_the_wrong_update_does_not() -> None:
    images = range(150)
    public = sample().train.take(torch.arange(2000))
    task = replace(sample_task(), public=Batch(public.images, public.labels))
    batch, rebuilt = take(images), attack(task, images)
    means = class_means(Batch(public.images, public.labels), 10).view(-1, *task.shape)
    floor = psnr(means[batch.labels], batch.pixels())
    gained = mean_interval((psnr(rebuilt, batch.pixels()) - floor).tolist())
    assert gained.low is not None
    assert gained.low > 3
    assert share_picked_out(rebuilt, batch) > 0.7
    swapped = rebuilt.clone()
    for label in range(10):
        own = (batch.labels == label).nonzero().flatten()
        swapped[own] = rebuilt[own.roll(1)]
    wrong = mean_interval((psnr(swapped, batch.pixels()) - floor).tolist())
    assert wrong.high is not None
    assert wrong.high < 0
    assert share_picked_out(swapped, batch) < 0.15


@pytest.mark.slow
def test_norms_give_images_away_where_every_direction_is_drawn() -> None:
    """CENSOR keeps the norm of each tensor; the update of another image of the class says nothing."""
    images, defence = range(60), "censor:trials=1"
    train = sample().train.take(torch.arange(1000))
    public = Batch(train.images, train.labels)
    task = replace(sample_task(), public=public, known_defences=parse_defences([defence]))
    updates = [update_of(task, take([image]), defences=[defence], seed=image) for image in images]
    results = Learned(draws=1, width=16, epochs=1).attack_many(task, updates, [generator(0, image) for image in images])
    rebuilt, batch = torch.cat([one.images for one in results]), take(images)
    floor = psnr(class_means(public, 10).view(-1, *task.shape)[batch.labels], batch.pixels())
    gained = mean_interval((psnr(rebuilt, batch.pixels()) - floor).tolist())
    assert gained.low is not None
    assert gained.low > 0
    swapped = rebuilt.clone()
    for label in range(10):
        own = (batch.labels == label).nonzero().flatten()
        swapped[own] = rebuilt[own.roll(1)]
    assert mean_interval((psnr(swapped, batch.pixels()) - floor).tolist()).mean < 0


@pytest.mark.slow
def test_learns_once_for_all_updates_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    lessons: list[learned.Lesson] = []
    learn = learned.Lesson.learn

    def count(own: learned.Lesson, report: Callable[[float], None]) -> learned.Inverter:
        lessons.append(own)
        return learn(own, report)

    monkeypatch.setattr(learned.Lesson, "learn", count)
    monkeypatch.setattr(learned, "cache", {})
    task = make_task()
    first = SMALL(task, release(task), generator(0))
    assert torch.equal(SMALL(make_task(), release(task), generator(1)).images, first.images)
    assert len(lessons) == 1
    SMALL(make_task(known=("sign",)), release(task), generator(0))
    SMALL(replace(task, public=replace_first(task)), release(task), generator(0))
    replace(SMALL, seed=1)(task, release(task), generator(0))
    with torch.no_grad():
        next(iter(task.model.parameters())).mul_(1.5)
    SMALL(task, release(task), generator(0))
    assert len(lessons) == 5


def replace_first(task: Task) -> Batch:
    assert task.public is not None
    images = task.public.images.clone()
    images[0] = 0
    return Batch(images, task.public.labels)


def test_takes_weight_changes_and_hidden_labels() -> None:
    task = make_task(known=("crop-flip",))
    update = release(task, local=LocalTraining(steps=2), share_labels=False)
    result = SMALL(task, update, generator(0))
    assert result.status == "ok"
    assert int(result.labels) == int(release(task).labels[0])  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_an_untrained_network_gives_batches_away_and_the_wrong_update_does_not(size: int) -> None:
    public = sample().train.take(torch.arange(2000))
    task = replace(sample_task(), public=Batch(public.images, public.labels))
    parts = [take(range(start, start + size)) for start in range(0, 120, size)]
    updates = [update_of(task, part) for part in parts]
    rebuilt = Learned(epochs=0).attack_many(task, updates, [generator(0)] * len(updates))
    means = class_means(Batch(public.images, public.labels), 10).view(-1, *task.shape)
    gains = [pair(one.images, part) - pair(means[part.labels], part) for one, part in zip(rebuilt, parts, strict=True)]
    gained = mean_interval([float(gain.mean()) for gain in gains])
    assert gained.low is not None
    assert gained.low > 2
    # The wrong update: images of other batches that happen to have the same labels.
    pictures = torch.cat([one.images for one in rebuilt])
    batch = Batch.join(parts)
    wrong = []
    for label in range(10):
        own = (batch.labels == label).nonzero().flatten()
        swapped = psnr(pictures[own.roll(size)], batch.pixels()[own]) - psnr(means[[label]], batch.pixels()[own])
        wrong += swapped.tolist()
    control = mean_interval(wrong)
    assert control.high is not None
    assert control.high < 0


def pair(pictures: Tensor, batch: Batch) -> Tensor:
    """Score the pictures of a batch, paired within equal labels as an audit does."""
    scores = torch.zeros(len(batch), dtype=torch.float64)
    for label in set(batch.labels.tolist()):
        own = (batch.labels == label).nonzero().flatten()
        truth = batch.pixels()[own]
        scores[own] = psnr(pictures[own][assign(pictures[own], truth)], truth).double()
    return scores


def test_pictures_of_a_batch_stand_in_the_order_of_its_labels() -> None:
    task = make_task()
    update = release(task, count=2)
    assert update.labels is not None
    assert update.labels[0] > update.labels[1]
    turned = replace(update, labels=update.labels.flip(0))
    first, second = SMALL(task, update, generator(0)), SMALL(task, turned, generator(0))
    assert torch.equal(first.labels, update.labels)
    torch.testing.assert_close(second.images, first.images.flip(0))


def test_refuses_mixed_updates_and_too_few_public_images() -> None:
    task = make_task()
    with pytest.raises(KnowledgeError, match="different kinds"):
        SMALL.attack_many(task, [release(task), release(task, count=2)], [generator(0), generator(1)])
    with pytest.raises(KnowledgeError, match="the task has 16: give it 20"):
        SMALL(task, release(task, count=5), generator(0))
    assert task.public is not None
    with pytest.raises(KnowledgeError, match="the task has 3"):
        SMALL(replace(task, public=task.public.take(slice(0, 3))), release(task), generator(0))
    updates = [release(task), release(task, local=LocalTraining(steps=1))]
    with pytest.raises(KnowledgeError, match="different kinds"):
        SMALL.attack_many(task, updates, [generator(0), generator(1)])
    with pytest.raises(SettingsError, match="0 draws"):
        Learned(draws=0)


def test_an_update_that_is_not_finite_is_a_failure() -> None:
    task = make_task()
    update = release(task)
    broken = replace(update, tensors={name: torch.nan * tensor for name, tensor in update.tensors.items()})
    result = SMALL(task, broken, generator(0))
    assert result.status == "failed"
    assert "not finite" in result.reason
