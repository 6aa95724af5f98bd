"""The attacker's twin gives what the client releases, on every combination that it claims to simulate."""

import copy
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from gradveil.client import Client, Simulation
from gradveil.client.simulation import NO_DROPOUT, UNKNOWN_ORDER
from gradveil.defences import Oasis, known_views
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator
from gradveil.rounds import aggregate
from gradveil.types import ONE_GRADIENT, Batch, LocalTraining, Update

SHAPE = (1, 12, 12)
WAYS = {
    "gradient": ONE_GRADIENT,
    "sgd": LocalTraining(steps=3, batch_size=2),
    "momentum": LocalTraining(steps=3, batch_size=2, momentum=0.9, nesterov=True, weight_decay=1e-2),
    "epochs": LocalTraining(epochs=2, batch_size=3, momentum=0.5),
    "adam": LocalTraining(steps=2, optimiser="adam", learning_rate=1e-3, weight_decay=1e-2),
    "muon": LocalTraining(steps=2, optimiser="muon", momentum=0.9, nesterov=True, weight_decay=1e-3),
}
MODELS = ("lenet-relu", "convnet-2", "resnet18-w4", "mlp")


def network(name: str) -> nn.Module:
    """Build a model in double precision, so that rounding cannot hide a difference."""
    model = build(name, SHAPE, 4, (0.5,), (0.5,), generator(0)).double()
    model.train()(batch(8).images)
    return model.eval()


def batch(count: int = 4) -> Batch:
    images = torch.rand(count, *SHAPE, generator=generator(1), dtype=torch.float64)
    return Batch(images, torch.arange(count) % 4)


def assert_same(simulated: dict[str, Tensor], row: int, update: Update, tolerance: float = 1e-9) -> None:
    assert simulated.keys() == update.tensors.keys()
    ours = torch.cat([simulated[name][row].flatten() for name in update.tensors])
    theirs = torch.cat([tensor.flatten() for tensor in update.tensors.values()])
    assert float((ours - theirs).detach().norm() / theirs.norm()) < tolerance


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("way", "mode"), list(product(WAYS, ("eval", "train"))))
def test_the_twin_gives_what_the_client_releases(name: str, way: str, mode: str) -> None:
    local = replace(WAYS[way], mode=mode, loss=CrossEntropy(0.1))  # type: ignore[arg-type]
    model, images = network(name), batch()
    released = Client(copy.deepcopy(model), local).update(model.state_dict(), images, (), generator(0))
    simulation = Simulation(model, local.loss, local, SHAPE)
    assert simulation.approximations == ()
    for runs in (1, 3):
        many = images.images.expand(runs, -1, -1, -1, -1)
        simulated = simulation(many, images.labels.expand(runs, -1))
        # Adam divides by gradients that are 0 but for rounding.
        assert_same(simulated, runs - 1, released, 1e-3 if way == "adam" else 1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_single_image_is_simulated_too(name: str, way: str) -> None:
    """With batches of one image, channels-last kernels once got wrong gradients in every run but the first steps."""
    local = replace(WAYS[way], batch_size=1) if WAYS[way].takes_steps else WAYS[way]
    model, images = network(name), batch(3 if local.takes_steps else 1)
    released = Client(copy.deepcopy(model), local).update(model.state_dict(), images, (), generator(0))
    simulated = Simulation(model, local.loss, local, SHAPE)(
        images.images.expand(4, -1, -1, -1, -1), images.labels.expand(4, -1)
    )
    assert_same(simulated, 3, released, 1e-3 if way == "adam" else 1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_it_can_be_differentiated(way: str) -> None:
    local, images = WAYS[way], batch()
    pixels = images.images[None].clone().requires_grad_()
    updates = Simulation(network("lenet-relu"), local.loss, local, SHAPE)(pixels, images.labels[None])
    (slope,) = torch.autograd.grad(torch.stack([tensor.square().sum() for tensor in updates.values()]).sum(), pixels)
    assert slope.isfinite().all()
    assert float(slope.abs().sum()) > 0


@pytest.mark.parametrize(("way", "mode"), list(product(("gradient", "momentum"), ("eval", "train"))))
def test_the_mean_of_several_participants_is_simulated(way: str, mode: str) -> None:
    local = replace(WAYS[way], mode=mode)  # type: ignore[arg-type]
    model, images = network("convnet-2"), batch(8)
    clients = [images.take(slice(0, 4)), images.take(slice(4, 8))]
    updates = [Client(copy.deepcopy(model), local).update(model.state_dict(), c, (), generator(0)) for c in clients]
    simulation = Simulation(model, local.loss, local, SHAPE, participants=2)
    assert_same(simulation(images.images[None], images.labels[None]), 0, aggregate(updates))


@pytest.mark.parametrize(("way", "mode"), list(product(("gradient", "momentum"), ("eval", "train"))))
def test_views_of_every_image_are_fed_as_the_client_feeds_them(way: str, mode: str) -> None:
    local = replace(WAYS[way], mode=mode)  # type: ignore[arg-type]
    model, images = network("convnet-2"), batch()
    known = [Oasis(("major", "shear"))]
    released = Client(copy.deepcopy(model), local).update(model.state_dict(), images, known, generator(0))
    simulation = Simulation(model, local.loss, local, SHAPE, views=known_views(known))
    for runs in (1, 3):
        many = images.images.expand(runs, -1, -1, -1, -1)
        assert_same(simulation(many, images.labels.expand(runs, -1)), runs - 1, released)


def test_what_cannot_be_known_is_named() -> None:
    dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 4))
    shuffled = LocalTraining(epochs=2, batch_size=2, shuffle=True, mode="train")
    assert Simulation(dropping, shuffled.loss, shuffled, SHAPE).approximations == (UNKNOWN_ORDER, NO_DROPOUT)
    evaluated = replace(shuffled, mode="eval", shuffle=False)
    assert Simulation(dropping, evaluated.loss, evaluated, SHAPE).approximations == ()


def test_dropout_is_left_out() -> None:
    dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 4)).double()
    local = LocalTraining(mode="train")
    simulation = Simulation(dropping, local.loss, local, SHAPE)
    first, second = (simulation(batch().images[None], batch().labels[None]) for _ in range(2))
    assert torch.equal(first["2.weight"], second["2.weight"])
    plain = Client(dropping).update(dropping.state_dict(), batch(), (), generator(0))
    assert_same(first, 0, plain)


def test_the_model_given_is_left_as_it_is() -> None:
    model = network("convnet-2")
    before = copy.deepcopy(model.state_dict())
    local = LocalTraining(steps=2, mode="train")
    Simulation(model, local.loss, local, SHAPE)(batch().images[None], batch().labels[None])
    assert not model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_strided_small_convolution_does_not_corrupt_memory() -> None:
    """resnet18-w4 has strided 1×1 convolutions of 4 channels, which crash channels-last oneDNN."""
    model = build("resnet18-w4", SHAPE, 4, (0.5,), (0.5,), generator(0)).eval()
    simulation = Simulation(model, CrossEntropy(), ONE_GRADIENT, SHAPE)
    assert simulation.layout == torch.contiguous_format
    images = torch.rand(1, 8, *SHAPE, generator=generator(1)).requires_grad_()
    for _ in range(3):
        updates = simulation(images, torch.zeros(1, 8, dtype=torch.int64))
        torch.autograd.grad(sum(tensor.square().sum() for tensor in updates.values()), images)  # type: ignore[arg-type]


class Viewing(nn.Module):
    """The original DLG LeNet flattens with `view`, which channels-last memory refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 6, 3, stride=2)
        self.head = nn.Linear(6 * 5 * 5, 4)

    def forward(self, images: Tensor) -> Tensor:
        hidden: Tensor = self.body(images).sigmoid()
        logits: Tensor = self.head(hidden.view(len(hidden), -1))
        return logits


@pytest.mark.parametrize("runs", [1, 4])
def test_a_model_that_views_is_simulated(runs: int) -> None:
    model = Viewing().double()
    simulation = Simulation(model, CrossEntropy(), ONE_GRADIENT, SHAPE)
    updates = simulation(batch().images.expand(runs, -1, -1, -1, -1), batch().labels.expand(runs, -1))
    released = Client(copy.deepcopy(model)).update(model.state_dict(), batch(), (), generator(0))
    assert_same(updates, 0, released)
