"""What batch normalisations saw."""

import copy

import pytest
import torch
from torch import nn

from gradveil.attacks.statistics import StatisticsGap, known_statistics, moved_share, shows_statistics
from gradveil.errors import KnowledgeError
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining
from tests.attacks.scenes import plain_task, small_model, update_of

BATCH = Batch(torch.rand(6, 1, 12, 12, generator=generator(1)), torch.tensor([0, 1, 2, 3, 0, 1]))
TRAIN = LocalTraining(mode="train")


def test_statistics_of_the_client_are_read_from_its_buffers() -> None:
    task = plain_task(small_model("convnet-2"))
    update = update_of(task, BATCH, TRAIN)
    known = known_statistics(task.model, update)
    gap = StatisticsGap(task, TRAIN, known)
    true, other = (gap(images[None]).detach() for images in (BATCH.images, 1 - BATCH.images.square()))
    # All layers agree, also those behind the first: the client's normalised by the batch, and so do these.
    assert len(known) > 1
    assert float(true) < 1e-4
    assert float(other) > 100 * float(true)


def test_in_evaluation_mode_the_running_statistics_stand_for_any_image() -> None:
    model = small_model("convnet-2")
    task = plain_task(model)
    with pytest.raises(KnowledgeError, match="made with"):
        known_statistics(model, update_of(task, BATCH))
    model.train()(BATCH.images)
    model.eval()
    update = update_of(task, BATCH)
    assert not shows_statistics(model, update)
    known = known_statistics(model, update)
    name, layer = next((name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.BatchNorm2d))
    assert layer.running_mean is not None
    assert torch.equal(known[name].mean, layer.running_mean)


def test_runs_do_not_see_each_other() -> None:
    task = plain_task(small_model("convnet-2"))
    task.model.train()(BATCH.images)
    task.model.eval()
    images = torch.stack([BATCH.images[:3], BATCH.images[3:].square()])
    for local in (LocalTraining(), TRAIN):
        gap = StatisticsGap(task, local, known_statistics(task.model, update_of(task, BATCH, local)))
        alone = torch.cat([gap(run[None]) for run in images])
        torch.testing.assert_close(gap(images), alone)
        assert abs(float(alone[0].detach() - alone[1].detach())) > 1e-4


@pytest.mark.parametrize("momentum", [0.1, 0.3, None])
@pytest.mark.parametrize("batches", [1, 3])
def test_running_statistics_move_by_the_share(momentum: float | None, batches: int) -> None:
    layer = nn.BatchNorm2d(1, momentum=momentum)
    layer(torch.randn(8, 1, 2, 2, generator=generator(0)))
    before = copy.deepcopy(layer)
    assert before.running_mean is not None
    assert layer.running_mean is not None
    batch = 2 + torch.randn(8, 1, 2, 2, generator=generator(1))
    for _ in range(batches):
        layer(batch)
    moved = (layer.running_mean - before.running_mean) / moved_share(before, batches)
    torch.testing.assert_close(before.running_mean + moved, batch.mean((0, 2, 3)))


def test_a_model_without_statistics_is_refused() -> None:
    task = plain_task(small_model("lenet-relu"))
    with pytest.raises(KnowledgeError, match="no batch normalisation"):
        known_statistics(task.model, update_of(task, BATCH))


def test_the_comparison_stays_on_the_device() -> None:
    task = plain_task(small_model("convnet-2"))
    update = update_of(task, BATCH, TRAIN)
    known = known_statistics(task.model, update)
    there = {name: type(one)(one.mean.to("meta"), one.variance.to("meta")) for name, one in known.items()}
    gap = StatisticsGap(task.to("meta"), TRAIN, there)
    assert gap(BATCH.images.to("meta")[None]).is_meta
