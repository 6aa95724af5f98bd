"""Bound the length of an update."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Clip(Parametrised):
    """Scale the update down to the Euclidean norm `norm` if it is longer."""

    norm: float

    name: ClassVar[str] = "clip"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    allowed: ClassVar[str] = "write clip:C with the largest norm C of the whole update, above 0, such as clip:1"

    def is_allowed(self) -> bool:
        return 0 < self.norm < math.inf

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        factor = (self.norm / length(update.tensors).clamp(min=1e-30)).clamp(max=1)
        return replace(update, tensors={name: tensor * factor for name, tensor in update.tensors.items()})


def length(tensors: Mapping[str, Tensor]) -> Tensor:
    """Take the Euclidean norm of all entries together."""
    return torch.stack([tensor.square().sum() for tensor in tensors.values()]).sum().sqrt()
