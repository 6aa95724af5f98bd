"""The client's computation, as the attacker repeats it."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.client import gradient, gradients_apart, local_update, local_weights, parameters_of, updates_apart
from gradveil.errors import SettingsError
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, LocalSteps


def network() -> nn.Module:
    return build("lenet-relu", (1, 12, 12), 4, (0.5,), (0.5,), generator(0)).eval()


def batch(count: int = 4) -> Batch:
    return Batch(torch.rand(count, 1, 12, 12, generator=generator(1)), torch.arange(count) % 4)


def test_gradient_is_what_autograd_gives() -> None:
    model, images = network(), batch()
    loss = F.cross_entropy(model(images.images), images.labels)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    found = gradient(model, F.cross_entropy, images.images, images.labels)
    for (name, _), slope in zip(model.named_parameters(), expected, strict=True):
        torch.testing.assert_close(found[name], slope)


def test_groups_have_gradients_of_their_own() -> None:
    model, images = network(), batch()
    apart = gradients_apart(model, F.cross_entropy, images.images[:, None], images.labels[:, None])
    for place in range(len(images)):
        alone = gradient(model, F.cross_entropy, images.images[place : place + 1], images.labels[place : place + 1])
        for name, tensor in alone.items():
            torch.testing.assert_close(apart[name][place], tensor, rtol=1e-4, atol=1e-6)


def test_local_steps_are_those_of_torch_sgd() -> None:
    images, local = batch(), LocalSteps(steps=3, learning_rate=0.1, batch_size=2)
    found = local_weights(network(), F.cross_entropy, images.images, images.labels, local)
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for chosen in ([0, 1], [2, 3], [0, 1]):
        loss = F.cross_entropy(model(images.images[chosen]), images.labels[chosen])
        for parameter, slope in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.grad = slope
        optimiser.step()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("local", [None, LocalSteps(2, 0.1, 1)])
def test_the_attacker_repeats_the_client_and_can_differentiate(local: LocalSteps | None) -> None:
    model, images = network(), batch(2)
    released = local_update(model, F.cross_entropy, images, local)
    pixels = images.images[None].clone().requires_grad_()
    again = updates_apart(model, F.cross_entropy, pixels, images.labels[None], local)
    for name, tensor in released.tensors.items():
        torch.testing.assert_close(again[name][0].detach(), tensor, rtol=1e-4, atol=1e-6)
    total: Tensor = torch.stack([tensor.square().sum() for tensor in again.values()]).sum()
    (slope,) = torch.autograd.grad(total, pixels)
    assert float(slope.abs().sum()) > 0


def test_an_update_is_detached_and_leaves_the_model_alone() -> None:
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    update = local_update(model, F.cross_entropy, batch(), share_labels=False)
    assert update.labels is None
    assert not any(tensor.requires_grad for tensor in update.tensors.values())
    assert set(update.tensors) == set(parameters_of(model))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_local_batches_larger_than_the_batch_are_refused() -> None:
    with pytest.raises(SettingsError, match="at most 4"):
        local_update(network(), F.cross_entropy, batch(), LocalSteps(1, 0.1, 5))
