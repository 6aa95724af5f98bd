"""From a model's name to the model."""

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import torch
from torch import nn

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models.convnet import ConvNet
from gradveil.models.lenet import LeNet
from gradveil.models.mlp import MultilayerPerceptron
from gradveil.models.resnet import resnet18, resnet20, resnet152
from gradveil.models.vit import VisionTransformer
from gradveil.rng import global_state_from

Factory = Callable[[tuple[int, int, int], int, Sequence[float], Sequence[float]], nn.Module]

# A capital letter at the end of a name stands for a whole number: the width.
MODELS: dict[str, Callable[..., nn.Module]] = {
    "lenet": LeNet,
    "lenet-relu": partial(LeNet, activation=nn.ReLU, uniform=None, kernels=24),
    "mlp": MultilayerPerceptron,
    "convnet-W": ConvNet,
    "convnet9-W": partial(ConvNet, late=3),
    "resnet20-K": resnet20,
    "resnet18": resnet18,
    "resnet18-wW": resnet18,
    "resnet152": resnet152,
    "vit-tiny": VisionTransformer,
}
SMALLEST = 9


def factory(name: str) -> Factory:
    """Find the function that makes the model called `name`, or the person's own if it is `package.module:function`."""
    if ":" in name:
        return import_factory(name)
    for pattern, make in MODELS.items():
        if pattern == name and not pattern[-1].isupper():
            return make
        match = re.fullmatch(rf"{re.escape(pattern[:-1])}([1-9]\d{{0,3}})", name)
        if match is not None and pattern[-1].isupper():
            return partial(make, width=int(match[1]))
    raise UnknownNameError("model", name, [*MODELS, "package.module:factory"])


def import_factory(name: str) -> Factory:
    """Import a person's own factory; it takes the image shape, the number of classes, mean and std."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"model '{name}' cannot be imported: {error}; give package.module:function of something on Python's path"
        ) from error
    if not callable(found):
        raise SettingsError(f"model '{name}' is {type(found).__name__}: it must be a function that returns a module")
    make: Factory = found
    return make


@dataclass(frozen=True)
class ModelSpec:
    """All that is needed to build a model apart from its weights."""

    name: str
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        channels, height, width = self.shape
        if min(height, width) < SMALLEST or channels < 1:
            raise SettingsError(
                f"images are {channels}×{height}×{width}: models take 1 channel or more and {SMALLEST} pixels a side "
                "or more"
            )
        if not len(self.mean) == len(self.std) == channels:
            raise SettingsError(
                f"there are {len(self.mean)} means and {len(self.std)} deviations for {channels} channels: "
                "give one of each per channel"
            )
        if self.classes < 2:
            raise SettingsError(f"a model for {self.classes} classes has nothing to learn: at least 2 are needed")

    def to_record(self) -> dict[str, Any]:
        """Give the specification as it stands in JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ModelSpec":
        """Read a specification back from JSON; a missing, unknown or mistyped key is refused."""
        expected = {field.name for field in fields(cls)}
        if set(record) != expected:
            raise SettingsError(f"a model is described by {', '.join(sorted(record))}: it must be {sorted(expected)}")
        try:
            return cls(
                str(record["name"]),
                tuple(map(int, record["shape"])),  # type: ignore[arg-type]
                int(record["classes"]),
                tuple(map(float, record["mean"])),
                tuple(map(float, record["std"])),
            )
        except (TypeError, ValueError) as error:
            raise SettingsError(f"a model is described by {dict(record)}: {error}") from error

    def build(self, generator: torch.Generator) -> nn.Module:
        """Make the model with weights drawn from `generator`."""
        with global_state_from(generator):
            model = factory(self.name)(self.shape, self.classes, self.mean, self.std)
        if ":" in self.name:
            check_output(model, self)
        return model


def check_output(model: object, spec: ModelSpec) -> None:
    """Refuse what a person's own factory made if it is no classifier for these images."""
    if not isinstance(model, nn.Module):
        raise SettingsError(f"model '{spec.name}' made {type(model).__name__}: it must return a torch.nn.Module")
    wanted = (2, spec.classes)
    try:
        with torch.inference_mode():
            found = tuple(model.eval()(torch.zeros(2, *spec.shape)).shape)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise SettingsError(f"model '{spec.name}' fails on images of shape {spec.shape}: {error}") from error
    finally:
        model.train()
    if found != wanted:
        raise SettingsError(f"model '{spec.name}' turns two images into {found}: it must give logits of shape {wanted}")


def build(
    name: str,
    shape: tuple[int, int, int],
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
    generator: torch.Generator,
) -> nn.Module:
    """Make the model called `name` with weights drawn from `generator`."""
    return ModelSpec(name, shape, classes, tuple(mean), tuple(std)).build(generator)
