"""Aggregation: the weighted mean, the server's step, and the updates that are refused."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gradveil.client import Client, make_optimiser
from gradveil.defences import parse_arm
from gradveil.errors import DivergenceError
from gradveil.federated.aggregation import ReplyError, ServerState, check_update, weighted_mean
from gradveil.federated.settings import FederatedSettings
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST, PAPER, TrainingSettings
from gradveil.types import Batch, LocalTraining, Update

SPEC = ModelSpec("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,))
SETTINGS = FederatedSettings(model="convnet-2", clients=4, arm="none")


def build() -> nn.Module:
    return SPEC.build(generator(0))


def make_batch(images: int, seed: int = 1) -> Batch:
    source = generator(seed)
    return Batch(torch.rand(images, 1, 12, 12, generator=source), torch.randint(0, 4, (images,), generator=source))


def release(batch: Batch, local: LocalTraining) -> Update:
    model = build()
    return Client(model, local).update(model.state_dict(), batch, parse_arm("none").defences, generator(0))


def test_the_mean_is_weighted_by_images() -> None:
    updates = {1: Update({"w": torch.tensor([3.0])}, 3), 0: Update({"w": torch.tensor([-1.0])}, 1)}
    mean = weighted_mean(updates)
    assert float(mean.tensors["w"]) == 2.0
    assert mean.images == 4


def test_the_mean_does_not_depend_on_the_order_of_arrival() -> None:
    source = generator(3)
    tensors = [torch.randn(1000, generator=source) * 10.0 ** (k - 3) for k in range(7)]
    forwards = {client: Update({"w": tensor}, client + 1) for client, tensor in enumerate(tensors)}
    backwards = dict(reversed(forwards.items()))
    assert torch.equal(weighted_mean(forwards).tensors["w"], weighted_mean(backwards).tensors["w"])


def test_the_mean_of_gradients_is_the_gradient_of_all_images() -> None:
    everyone, local = make_batch(6), LocalTraining(mode="eval")
    parts = {0: everyone.take(slice(0, 1)), 1: everyone.take(slice(1, 4)), 2: everyone.take(slice(4, 6))}
    mean = weighted_mean({client: release(part, local) for client, part in parts.items()})
    for name, tensor in release(everyone, local).tensors.items():
        torch.testing.assert_close(mean.tensors[name], tensor, rtol=1e-4, atol=1e-7)


def test_buffers_are_averaged_as_floats_rounded_and_keep_their_types() -> None:
    buffers: list[dict[str, Tensor]] = [
        {"mean": torch.tensor([1.0]), "count": torch.tensor(3)},
        {"mean": torch.tensor([2.0]), "count": torch.tensor(4)},
    ]
    mean = weighted_mean({row: Update({"w": torch.zeros(1)}, 1, buffers=part) for row, part in enumerate(buffers)})
    assert mean.buffers is not None
    assert float(mean.buffers["mean"]) == 1.5
    assert mean.buffers["count"].dtype == torch.int64
    assert int(mean.buffers["count"]) == 4


@pytest.mark.parametrize("training", [PAPER, FAST], ids=["paper", "fast"])
def test_fedsgd_takes_the_steps_of_the_recipe(training: TrainingSettings) -> None:
    settings = replace(SETTINGS, training=training)
    server, rounds = ServerState(build(), settings, 3), 3
    model = build()
    optimiser = make_optimiser(model, training.local())
    for number in range(1, rounds + 1):
        mean = release(make_batch(8, number), settings.works)
        server.apply(mean, number)
        for group in optimiser.param_groups:
            group["lr"] = training.rate(number - 1, rounds)
        for name, parameter in model.named_parameters():
            parameter.grad = mean.tensors[name].clone()
        optimiser.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(server.weights[name], parameter), name


def test_fedavg_adds_the_change_and_takes_the_buffers() -> None:
    settings = replace(SETTINGS, algorithm="fedavg")
    server = ServerState(build(), settings, 2)
    before = server.weights
    update = release(make_batch(8), replace(settings.local, batch_size=4))
    after = server.apply(update, 1)
    assert update.buffers is not None
    for name, tensor in update.tensors.items():
        assert torch.equal(after[name], before[name] + tensor)
    for name, buffer in update.buffers.items():
        assert torch.equal(after[name], buffer)
        assert after[name].dtype == before[name].dtype


def test_the_weights_are_a_copy() -> None:
    server = ServerState(build(), SETTINGS, 1)
    next(iter(server.weights.values())).fill_(9)
    assert all(float(tensor.float().max()) != 9 for tensor in server.weights.values())


def test_a_good_update_passes() -> None:
    update = release(make_batch(4), LocalTraining(mode="train"))
    check_update(update, build().state_dict(), 1e4)


def test_weights_that_are_not_finite_end_the_training() -> None:
    server = ServerState(build(), replace(SETTINGS, algorithm="fedavg"), 1)
    name, weight = next(iter(server.model.named_parameters()))
    with pytest.raises(DivergenceError, match="round 1"):
        server.apply(Update({name: torch.full_like(weight, float("inf"))}, 1), 1)


@pytest.mark.parametrize(("value", "reason"), [(float("nan"), "NaN"), (float("inf"), "NaN"), (1e30, "norm")])
@pytest.mark.parametrize("part", ["tensors", "buffers"])
def test_an_update_that_is_not_usable_is_refused(part: str, value: float, reason: str) -> None:
    update = release(make_batch(4), LocalTraining(mode="train"))
    tensors = getattr(update, part)
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point())
    broken = {**tensors, name: torch.full_like(tensors[name], value)}
    bad = replace(update, tensors=broken) if part == "tensors" else replace(update, buffers=broken)
    with pytest.raises(ReplyError, match=reason):
        check_update(bad, build().state_dict(), 1e4)
