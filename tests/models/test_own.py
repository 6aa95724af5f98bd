"""A person's own models."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.workers import Report, Workers
from tests.models.test_registry import COLOUR, build

OWN = """
import torch
from torch import nn
def good(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))
def narrow(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(7, classes))
def short(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], 3))
def nothing(shape, classes, mean, std):
    return None
def none():
    return good((3, 32, 32), 7, None, None)
def default(shape=(1, 28, 28), classes=10, mean=(), std=()):
    return good(shape, classes, mean, std)
def two(width, depth):
    return None
def fails(shape, classes, mean, std):
    raise KeyError("weights.pt")
class Net(nn.Sequential):
    def __init__(self, classes=7, width=8):
        super().__init__(nn.Flatten(), nn.Linear(3072, width), nn.Linear(width, classes))
class Sized(nn.Sequential):
    def __init__(self, shape, classes, mean, std, width=8):
        super().__init__(nn.Flatten(), nn.Linear(3072, width), nn.Linear(width, classes))
class Odd(nn.Module):
    def __init__(self, shape, classes, mean, std):
        super().__init__()
        self.one = nn.Linear(3072, 8)
        self.two = nn.Linear(8, classes)
        self.change()
    def forward(self, images):
        return self.two(self.one(images.flatten(1)).relu())
class Frozen(Odd):
    def change(self): self.one.requires_grad_(False)
class AllFrozen(Odd):
    def change(self): self.requires_grad_(False)
class Unused(Odd):
    def change(self): self.spare = nn.Linear(2, 2)
class Tied(Odd):
    def change(self): self.again = nn.Linear(3072, 8); self.again.weight = self.one.weight
    def forward(self, images): return self.two(self.again(images.flatten(1)).relu() + self.one(images.flatten(1)))
class Counting(Odd):
    def change(self):
        self.register_buffer("count", torch.zeros(2, dtype=torch.int32))
        self.register_buffer("small", torch.zeros(2, dtype=torch.bfloat16))
class Complex(Odd):
    def change(self): self.register_buffer("waves", torch.zeros(2, dtype=torch.complex64))
class InPlace(Odd):
    def change(self): pass
    def forward(self, images): images -= 0.5; return super().forward(images)
class ThroughAView(Odd):
    def change(self): pass
    def forward(self, images): images.flatten(1).mul_(2); return super().forward(images)
class Lazy(Odd):
    def change(self): self.two = nn.LazyLinear(self.two.out_features)
class LazyButCalled(Odd):
    def change(self): self.two = nn.LazyLinear(self.two.out_features); self(torch.zeros(1, 3, 32, 32))
class Guesses(Odd):
    def change(self): pass
    def forward(self, images): return nn.functional.one_hot(super().forward(images).argmax(1), 7)
class Detached(Odd):
    def change(self): pass
    def forward(self, images): return super().forward(images).detach()
class Pair(Odd):
    def change(self): pass
    def forward(self, images): return super().forward(images), images
class Stops(Odd):
    def change(self): raise SystemExit(1)
class FailsLater(Odd):
    def change(self): pass
    def forward(self, images): raise KeyError("several\\nlines")
class Empty(nn.Module):
    def __init__(self): super().__init__()
    def forward(self, images): return images.flatten(1)[:, :7]
class Uncopied(Odd):
    def change(self): self.cache = self.one.weight * 2
builtin = dict
keywords = lambda *, shape, classes, mean, std: None
number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models.py").write_text(OWN)
    (tmp_path / "broken_models.py").write_text("def make(:")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.delitem(sys.modules, "own_models", raising=False)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    "name",
    ["good", "none", "default", "Net", "Sized", "Frozen", "Unused", "Tied", "Counting", "LazyButCalled"],
)
def test_functions_and_classes_of_the_current_folder(name: str) -> None:
    """With the four arguments or with none."""
    assert build(f"own_models:{name}")(torch.rand(4, 3, 32, 32)).shape == (4, 7)


@dataclass(frozen=True)
class BuildJob:
    """Build a model in a worker process."""

    spec: ModelSpec

    def run(self, report: Report) -> tuple[int, float]:  # noqa: ARG002
        model = self.spec.build(generator(0, "model"))
        return os.getpid(), sum(float(parameter.detach().sum()) for parameter in model.parameters())


@pytest.mark.usefixtures("own")
def test_worker_processes_find_the_current_folder() -> None:
    spec = ModelSpec("own_models:Net", (3, 32, 32), 7, *COLOUR)
    ready = ModelSpec.of(spec.build(generator(0, "model")), spec.shape, 7, *COLOUR)
    with Workers(2) as workers:
        outcomes = workers.run([BuildJob(spec), BuildJob(spec), BuildJob(ready)])
    assert os.getpid() not in {process for process, _ in outcomes}
    assert {total for _, total in outcomes} == {BuildJob(spec).run(lambda *_: None)[1]}


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", "fails on images"),
        ("short", r"\(2, 3\): it must return logits of shape \(2, 7\)"),
        ("nothing", "NoneType: it must be a torch.nn.Module"),
        ("number", r"int: it must be a function or a class that takes \(shape, classes, mean, std\)"),
        ("two", r"takes \(width, depth\): it must take \(shape, classes, mean, std\), or no arguments"),
        ("fails", "cannot be built for images of shape .*weights.pt"),
        ("missing", "cannot be imported"),
        ("AllFrozen", "no parameter that is trained"),
        ("Empty", "no parameter that is trained"),
        ("Complex", "'waves' of torch.complex64, which a checkpoint cannot hold"),
        ("InPlace", "changes its images in place"),
        ("ThroughAView", "changes its images in place"),
        ("Lazy", "a lazy layer, whose 'two.weight' has no size yet"),
        ("Guesses", "depend on none of its trained parameters"),
        ("Detached", "depend on none of its trained parameters"),
        ("Pair", "turns two images into tuple"),
        ("Stops", "cannot be built for images of shape .*SystemExit"),
        ("FailsLater", r"fails on images of shape .*KeyError"),
        ("Uncopied", "cannot be copied"),
        ("builtin", "it must"),
        ("keywords", r"it must take \(shape, classes, mean, std\)"),
    ],
)
def test_a_wrong_factory_is_refused(name: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build(f"own_models:{name}")


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("name", ["no_such_module:make", ":make", "torch:", "broken_models:make"])
def test_a_factory_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be imported"):
        build(name)
