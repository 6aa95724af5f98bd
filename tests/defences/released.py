"""A released update of known entries, for the tests of defences that change updates."""

import torch
from torch import Tensor

from gradveil.defences import parse_defence
from gradveil.rng import generator
from gradveil.types import Update


def update() -> Update:
    source = generator(0)
    shapes = {"first": (40, 30), "second": (500,), "third": (2, 2)}
    return Update({name: torch.randn(shape, generator=source) * 0.1 for name, shape in shapes.items()}, 1)


def release(text: str, seed: int = 0) -> dict[str, Tensor]:
    return dict(parse_defence(text).release(update(), generator(seed)).tensors)


def flat(tensors: dict[str, Tensor]) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors.values()])


def error(text: str) -> float:
    return float((flat(release(text)) - flat(dict(update().tensors))).square().mean())
