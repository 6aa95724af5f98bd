"""Models by name."""

import re
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

from gradveil.errors import UnknownNameError
from gradveil.models.base import Normalise
from gradveil.models.convnet import ConvNet
from gradveil.models.lenet import LeNet
from gradveil.rng import global_state_from

Factory = Callable[[tuple[int, int, int], int, Sequence[float], Sequence[float]], nn.Module]

# A name that ends in -W takes a number there: its width.
MODELS: dict[str, Callable[..., nn.Module]] = {
    "lenet": LeNet,
    "lenet-relu": partial(LeNet, activation=nn.ReLU, uniform=None),
    "convnet-W": ConvNet,
}


def factory(name: str) -> Factory:
    """Find the function that makes the model called `name`."""
    if name in MODELS and not name.endswith("-W"):
        return MODELS[name]
    match = re.fullmatch(r"([a-z0-9-]+)-([1-9]\d{0,3})", name)
    if match is None or f"{match[1]}-W" not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    return partial(MODELS[f"{match[1]}-W"], width=int(match[2]))


def build(
    name: str,
    shape: tuple[int, int, int],
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
    generator: torch.Generator,
) -> nn.Module:
    """Make the model called `name` with weights drawn from `generator`."""
    with global_state_from(generator):
        return factory(name)(shape, classes, mean, std)


__all__ = ["MODELS", "ConvNet", "LeNet", "Normalise", "build", "factory"]
