"""FedAvg: images behind a weight change, in an order that nobody tells."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import ATTACKS, FederatedAveraging, Knowledge
from gradveil.attacks.fedavg import merge_passes, pair_versions
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.metrics import assign, psnr
from gradveil.rng import generator
from gradveil.types import LocalTraining, Reconstruction
from tests.attacks.scenes import make_task, recipe, release, sample_task, shorten, take, update_of

FIVE = LocalTraining(steps=5, batch_size=1, learning_rate=0.05)


def fedavg() -> FederatedAveraging:
    attack = ATTACKS["fedavg"]
    assert isinstance(attack, FederatedAveraging)
    return attack


def test_with_a_known_order_it_is_its_search() -> None:
    task = make_task()
    update = release(task, count=3, local=LocalTraining(steps=3, batch_size=1))
    attack = shorten(fedavg())
    assert isinstance(attack, FederatedAveraging)
    ours, search = attack(task, update, generator(0)), attack.search(task, update, generator(0))
    assert torch.equal(ours.images, search.images)
    assert not torch.equal(attack(task, replace(update, labels=None), generator(0)).images, search.images)


@pytest.mark.parametrize("local", [LocalTraining(epochs=3, batch_size=2), LocalTraining(steps=5, batch_size=2)])
def test_versions_of_several_passes_become_one_image_each(local: LocalTraining) -> None:
    task = make_task()
    update = release(task, count=4, local=replace(local, shuffle=True), share_labels=False)
    result = shorten(fedavg())(task, update, generator(0))
    assert result.status == "ok"
    assert result.images.shape == (4, *task.shape)
    assert result.labels.shape == (4,)
    assert all(picture.shape == result.images.shape for _, picture in result.pictures)


def test_versions_are_paired_within_a_label_and_averaged() -> None:
    first = torch.tensor([0.0, 1.0, 0.5]).view(3, 1, 1, 1)
    second = torch.tensor([0.8, 0.5, 0.2]).view(3, 1, 1, 1)
    labels = torch.tensor([0, 0, 1, 0, 1, 0])
    merged = merge_passes(Reconstruction(torch.cat([first, second]), labels, 0.1), 3)
    torch.testing.assert_close(merged.images.flatten(), torch.tensor([0.1, 0.9, 0.5]))
    assert merged.labels.tolist() == [0, 0, 1]
    own, theirs = pair_versions(first, labels[:3], second[:1], labels[3:4])
    assert (own.tolist(), theirs.tolist()) == ([1], [0])


def test_a_mean_of_clients_is_refused() -> None:
    task = replace(make_task(), participants=2)
    update = release(task, count=4, local=LocalTraining(steps=2, batch_size=1), share_labels=False)
    with pytest.raises(KnowledgeError, match="mean of several"):
        fedavg()(task, update, generator(0))


@pytest.mark.parametrize(
    "change",
    [
        {"kept": 300},
        {"finalists": 0},
        {"probe_steps": 0},
        {"passes": -1.0},
        {"search": replace(recipe("fast"), knowledge=Knowledge(labels=False))},
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        replace(fedavg(), **change)  # type: ignore[arg-type]


def test_steps_and_budget_reach_the_search() -> None:
    assert fedavg().with_steps(7).search.descent.steps == 7
    assert fedavg().with_steps(7).probe_steps == 7
    budgeted = fedavg().with_budget(2400)
    spent = budgeted.kept * budgeted.probe_steps + budgeted.finalists * budgeted.search.descent.steps
    assert 0.9 * 2400 <= spent <= 2400


@pytest.mark.parametrize("true", [0.0, 0.9])
def test_a_momentum_that_is_not_known_is_found(true: float) -> None:
    task = sample_task(seed=100)
    update = update_of(
        task, take(range(610, 615)), replace(FIVE, momentum=true, learning_rate=0.01), share_labels=False
    )
    told_wrong = replace(update, local=replace(update.local, momentum=0.3))
    attack = replace(fedavg(), tried=32, kept=2, momenta=(0.0, 0.9))
    unrolled, _, begun = attack.begin(task, told_wrong, generator(0))
    assert unrolled.local.momentum == true
    assert begun


@pytest.mark.slow
def test_it_finds_images_where_the_order_alone_hides_them_from_fast() -> None:
    """Positive control against `fast`, negative control against another client's images."""
    task, batch, other = sample_task(seed=100), take(range(600, 605)), take(range(605, 610))
    update = update_of(task, batch, FIVE, share_labels=False)
    found, fast = (ATTACKS[name](task, update, generator(100)) for name in ("fedavg", "fast"))

    def score(result: Reconstruction, truth: torch.Tensor) -> float:
        return float(psnr(result.images[assign(result.images, truth)], truth).mean())

    assert found.matching_loss < 0.6 * fast.matching_loss
    assert score(found, batch.pixels()) > score(fast, batch.pixels()) + 3
    assert score(found, batch.pixels()) > score(found, other.pixels()) + 5
