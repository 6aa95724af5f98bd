"""A replay gives what the function gives, to the last bit, or there is none."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from gradveil.client import Simulation
from gradveil.gradients import Recorder
from gradveil.gradients.recorded import AFTER
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, LocalTraining, Mode

SHAPE = (3, 12, 12)
WAYS = {"gradient": ONE_GRADIENT, "steps": LocalTraining(steps=2, batch_size=1, momentum=0.9)}
MODES: tuple[Mode, ...] = ("eval", "train")
MODELS = ("lenet-relu", "convnet-2", "resnet18-w2")
KINDS = [("gradient", "eval", 1), *((way, mode, 3) for way, mode in product(WAYS, MODES))]
CASES = [*((name, *kind) for name, kind in product(MODELS, KINDS)), ("vit-tiny", "gradient", "eval", 3)]


def call(recorder: Recorder, function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the value and its slopes."""
    value = recorder(function, "key", *inputs)
    wanted = [each for each in inputs if each.requires_grad]
    return (value.detach(), *torch.autograd.grad(value, wanted, value.detach().sin()))


def images(seed: int, runs: int = 3) -> Tensor:
    return torch.rand(runs, 2, *SHAPE, generator=generator(seed)).requires_grad_()


@pytest.mark.parametrize(("name", "way", "mode", "runs"), CASES)
def test_a_simulation_is_replayed_to_the_last_bit(name: str, way: str, mode: Mode, runs: int) -> None:
    model = build(name, SHAPE, 4, (0.5,) * 3, (0.5,) * 3, generator(0))
    local = replace(WAYS[way], mode=mode)
    simulation = Simulation(model, CrossEntropy(0.1), local, SHAPE)
    names = {each: tensor.numel() for each, tensor in simulation.parameters.items()}
    labels = torch.tensor([[0, 3]]).expand(runs, 2)
    for _ in range(AFTER):
        simulation.flat(images(0, runs), labels, names)
    assert simulation.recorder.recording is not None
    for seed in range(2):
        ours, theirs = images(seed, runs), images(seed, runs)
        found, expected = simulation.flat(ours, labels, names), simulation.lay_flat(tuple(names), theirs, labels)
        assert torch.equal(found, expected)
        slope = expected.detach().sin()
        slopes = (torch.autograd.grad(each, leaf, slope)[0] for each, leaf in ((found, ours), (expected, theirs)))
        assert torch.equal(*slopes)


def test_labels_that_are_searched_for_get_their_slopes() -> None:
    model = build("lenet-relu", SHAPE, 4, (0.5,) * 3, (0.5,) * 3, generator(0))
    simulation = Simulation(model, CrossEntropy(), ONE_GRADIENT, SHAPE)
    function = lambda *given: simulation.lay_flat(tuple(simulation.parameters), *given)  # noqa: E731
    recorder, probabilities = Recorder(), torch.full((3, 2, 4), 0.25).requires_grad_()
    for _ in range(AFTER + 1):
        found = call(recorder, function, images(1), probabilities)
    assert recorder.recording is not None
    for one, other in zip(found, call(Recorder(), function, images(1), probabilities), strict=True):
        assert torch.equal(one, other)


def test_a_few_calls_are_not_recorded_and_another_form_begins_anew() -> None:
    recorder = Recorder()
    for _ in range(AFTER - 1):
        call(recorder, torch.sin, images(0))
    assert recorder.recording is None
    call(recorder, torch.sin, images(0))
    assert recorder.recording is not None
    call(recorder, torch.sin, images(0, runs=2))
    assert recorder.recording is None


def test_what_needs_no_slope_is_not_recorded() -> None:
    recorder = Recorder()
    for _ in range(AFTER + 1):
        recorder(torch.sin, "key", images(0).detach())
        with torch.no_grad():
            recorder(torch.sin, "key", images(0))
    assert recorder.calls == 0


def test_writing_into_what_a_call_made_itself_is_replayed() -> None:
    recorder = Recorder()
    for seed in range(AFTER + 2):
        ours = images(seed)
        assert torch.equal(recorder(lambda given: given.sin().mul_(2).cos(), "key", ours), (2 * ours.sin()).cos())
    assert recorder.recording is not None


class Counting(nn.Module):
    """Gives another number at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        return images * self.calls


def draw(images: Tensor) -> Tensor:
    return images * torch.rand_like(images)


KEPT = torch.zeros(3, 2, *SHAPE)


def write(images: Tensor) -> Tensor:
    with torch.no_grad():
        KEPT.add_(images)
    return images * KEPT


def look(images: Tensor) -> Tensor:
    return images * 2 if float(images.detach().sum()) > 0 else images


@pytest.mark.parametrize("function", [draw, write, look, Counting()])
def test_what_could_not_be_replayed_truly_runs_as_it_is(function: Callable[..., Tensor]) -> None:
    recorder = Recorder()
    for _ in range(AFTER + 2):
        call(recorder, function, images(0))
    assert recorder.recording is None


def test_recording_draws_nothing() -> None:
    """A function that draws is called as often as without a recorder, and goes on with the same numbers."""
    found = []
    for recorder in (Recorder(), lambda function, _, *inputs: function(*inputs)):
        with torch.random.fork_rng():
            torch.manual_seed(3)
            found.append(torch.stack([call(recorder, draw, images(0))[0] for _ in range(AFTER + 2)]))  # type: ignore[arg-type]
    assert torch.equal(*found)
