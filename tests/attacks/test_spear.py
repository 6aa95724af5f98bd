"""Whole batches from the gradient of a fully-connected first layer."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil.attacks import ATTACKS, Spear, count_images
from gradveil.errors import KnowledgeError
from gradveil.metrics import assign, psnr
from gradveil.rng import generator
from gradveil.types import Batch, Task, Update
from tests.attacks.scenes import SIDE, plain_task, sample_task, take, update_of


@pytest.mark.parametrize("share_labels", [True, False])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_batch_is_recovered_exactly_with_its_labels(count: int, share_labels: bool) -> None:
    task, batch = sample_task("mlp"), take(range(20, 20 + count))
    update = update_of(task, batch, share_labels=share_labels)
    result = ATTACKS["spear"](task, update, generator(0))
    assert result.status == "ok"
    order = assign(result.images, batch.pixels())
    assert float(psnr(result.images[order], batch.pixels()).min()) > 60
    assert torch.equal(result.labels[order], batch.labels)
    assert result.matching_loss < 1e-5


def test_the_number_of_images_is_read_off_the_gradient() -> None:
    task = sample_task("mlp")
    for count in (1, 5, 12):
        assert count_images(update_of(task, take(range(count))).tensors["body.1.weight"]) == count
    assert count_images(torch.zeros(3, 4)) == 0


def test_noise_in_the_gradient_is_a_failure_with_a_reason() -> None:
    task = sample_task("mlp")
    update = update_of(task, take(range(4)), defences=["gaussian:0.01"])
    result = ATTACKS["spear"](task, update, generator(0))
    assert result.status == "failed"
    assert "rank" in result.reason


def test_too_few_samples_are_a_failure_or_a_bad_match() -> None:
    task = sample_task("mlp")
    result = Spear(samples=1)(task, update_of(task, take(range(16))), generator(0))
    assert result.status == "failed" or result.matching_loss > 1e-3


def release_plain(task: Task) -> Update:
    return update_of(task, Batch(torch.rand(1, 1, SIDE, SIDE, generator=generator(1)), torch.tensor([2])))


def linear_model(activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 16), activation, nn.Linear(16, 4)).eval()


def test_refuses_what_is_not_a_first_linear_layer_with_relu() -> None:
    relu, smooth = (plain_task(linear_model(layer)) for layer in (nn.ReLU(), nn.Tanh()))
    assert ATTACKS["spear"](relu, release_plain(relu), generator(0)).status == "ok"
    with pytest.raises(KnowledgeError, match="not followed by ReLU"):
        ATTACKS["spear"](smooth, release_plain(smooth), generator(0))
    task = sample_task("mlp")
    with pytest.raises(KnowledgeError, match="of 30 images"):
        ATTACKS["spear"](task, update_of(task, take(range(30))), generator(0))
    update = update_of(task, take([0]))
    lacking = replace(update, tensors={name: t for name, t in update.tensors.items() if name != "body.1.bias"})
    with pytest.raises(KnowledgeError, match="lacks"):
        ATTACKS["spear"](task, lacking, generator(0))
