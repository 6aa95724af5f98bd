"""From a model's name to the model."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models.convnet import ConvNet
from gradveil.models.lenet import LeNet
from gradveil.models.mlp import MultilayerPerceptron
from gradveil.models.own import Factory, Shape, check_model, import_factory
from gradveil.models.resnet import resnet18, resnet20, resnet152
from gradveil.models.vit import VisionTransformer
from gradveil.results import read_settings
from gradveil.rng import global_state_from

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
    "resnet152-wW": resnet152,
    "vit-tiny": VisionTransformer,
}
"""The models by name; a W or K in a name stands for a number."""
SMALLEST = 9


def factory(name: str) -> Factory:
    """Find the function that makes the model called `name`, or import it if the name is `package.module:function`."""
    if ":" in name:
        return import_factory(name)
    for pattern, make in MODELS.items():
        if pattern == name and not pattern[-1].isupper():
            return make
        match = re.fullmatch(rf"{re.escape(pattern[:-1])}([1-9]\d{{0,3}})", name)
        if match is not None and pattern[-1].isupper():
            return partial(make, width=int(match[1]))
    raise UnknownNameError("model", name, [*MODELS, "package.module:factory"])


@dataclass(frozen=True)
class ModelSpec:
    """What is needed to build a model apart from its weights; or a ready `module`, which brings its own weights."""

    name: str
    shape: Shape
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    module: nn.Module | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise SettingsError(f"a model is named {self.name!r:.60}: its name must be a text")
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
        if not all(math.isfinite(value) for value in self.mean) or not all(0 < value < math.inf for value in self.std):
            raise SettingsError(
                f"the means {self.mean} and deviations {self.std} cannot be used: all must be finite, and the "
                "deviations, which images are divided by, above 0"
            )
        if self.classes < 2:
            raise SettingsError(f"a model for {self.classes} classes has nothing to learn: at least 2 are needed")

    @classmethod
    def of(
        cls, module: nn.Module, shape: Shape, classes: int, mean: Sequence[float], std: Sequence[float]
    ) -> "ModelSpec":
        """Describe a ready module by a copy of it on the CPU; `build` returns it with its weights as they are."""
        name = type(module).__name__
        copy = deepcopy(module).cpu()
        check_model(copy, name, shape, classes)
        return cls(f"own {name}" if name in MODELS else name, shape, classes, tuple(mean), tuple(std), copy)

    def to_record(self) -> dict[str, Any]:
        """Return the specification as it is stored in JSON, without the module."""
        return {
            "name": self.name,
            "shape": self.shape,
            "classes": self.classes,
            "mean": self.mean,
            "std": self.std,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ModelSpec":
        """Read a specification from JSON; a missing, unknown or mistyped key is refused, and so is a ready module."""
        if "module" in record:
            raise UnknownNameError("model setting", "module", ("name", "shape", "classes", "mean", "std"))
        spec = read_settings(
            cls,
            record,
            "model",
            name=str,
            shape=whole_numbers,
            classes=whole_number,
            mean=real_numbers,
            std=real_numbers,
        )
        if ":" not in spec.name:
            try:
                factory(spec.name)
            except UnknownNameError as error:
                raise SettingsError(f"{error}; a module that was given in Python must be given again") from error
        return spec

    def build(self, generator: torch.Generator) -> nn.Module:
        """Make the model with weights drawn from `generator`, or copy the ready module."""
        if self.module is not None:
            return deepcopy(self.module)
        with global_state_from(generator):
            model = factory(self.name)(self.shape, self.classes, self.mean, self.std)
        if ":" in self.name:
            check_model(model, self.name, self.shape, self.classes)
        return model


def whole_numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(whole_number, values))


def whole_number(value: Any) -> int:
    """Read a whole number of JSON; `int` would cut a fraction off."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r:.60} is no whole number")
    return value


def real_numbers(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(map(float, values))


def build(
    name: str,
    shape: Shape,
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
    generator: torch.Generator,
) -> nn.Module:
    """Make the model called `name` with weights drawn from `generator`."""
    return ModelSpec(name, shape, classes, tuple(mean), tuple(std)).build(generator)
