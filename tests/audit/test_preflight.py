"""The check before an attack: it sees a wrong loss, and names what cannot be simulated."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil.audit.preflight import inspect_model, preflight
from gradveil.client import Client
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import Batch, LocalTraining, Task, Update

SHAPE = (1, 12, 12)


def make_task(model: nn.Module) -> Task:
    return Task(model.eval(), CrossEntropy(0.1), SHAPE, 4, (0.5,), (0.5,))


def batch() -> Batch:
    return Batch(torch.rand(4, *SHAPE, generator=generator(1)), torch.arange(4))


def release(model: nn.Module, local: LocalTraining) -> Update:
    return Client(model, local).update(model.state_dict(), batch(), (), generator(0))


@pytest.mark.parametrize("steps", [None, 2])
@pytest.mark.parametrize("name", ["lenet-relu", "convnet-2"])
def test_the_attackers_update_agrees(name: str, steps: int | None) -> None:
    model = build(name, SHAPE, 4, (0.5,), (0.5,), generator(0))
    update = release(model, LocalTraining(steps=steps, loss=CrossEntropy(0.1)))
    fresh = build(name, SHAPE, 4, (0.5,), (0.5,), generator(0))
    result = preflight(make_task(fresh), batch(), update)
    assert result.agrees
    assert result.notices == ()


def test_another_loss_is_seen() -> None:
    model = build("lenet-relu", SHAPE, 4, (0.5,), (0.5,), generator(0))
    update = release(model, LocalTraining(loss=CrossEntropy()))
    result = preflight(make_task(model), batch(), update)
    assert not result.agrees
    assert "differs from the released one by" in result.notices[-1]


def test_other_weights_are_seen() -> None:
    model, other = (build("lenet-relu", SHAPE, 4, (0.5,), (0.5,), generator(seed)) for seed in (0, 1))
    assert not preflight(make_task(other), batch(), release(model, LocalTraining(loss=CrossEntropy(0.1)))).agrees


def test_dropout_and_batch_statistics_are_named() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))
    local = LocalTraining(mode="train", loss=CrossEntropy(0.1))
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    update = release(model, local)
    model.load_state_dict(weights)
    result = preflight(make_task(model), batch(), update)
    assert "dropout is left out" in result.notices[0]
    assert "statistics of the batch" in result.notices[1]
    assert inspect_model(model, replace(update, local=LocalTraining())) == ()
