"""Bound the length of an update."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import KnownRelease, Released, Sizes
from gradveil.defences.knowledge import length as row_length
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Clip(Parametrised):
    """Scale the update down to the Euclidean norm `norm` if it is longer."""

    norm: float

    name: ClassVar[str] = "clip"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = "the cap: a longer candidate is scaled down to it; the direction was never hidden"
    allowed: ClassVar[str] = "write clip:C with the largest norm C of the whole update, above 0, such as clip:1"

    def is_allowed(self) -> bool:
        return 0 < self.norm < math.inf

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        factor = (self.norm / length(update.tensors).clamp(min=1e-30)).clamp(max=1)
        return replace(update, tensors={name: tensor * factor for name, tensor in update.tensors.items()})

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        """Shorten candidates as the client would; a mean of clipped updates is not a clipped mean."""
        return known if released.participants > 1 else known.then(partial(shorten, self.norm))


def shorten(norm: float, candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:  # noqa: ARG001
    """Scale the candidates of T×P that are longer than `norm` down to it."""
    return candidate * (norm / row_length(candidate)).clamp(max=1)


def length(tensors: Mapping[str, Tensor]) -> Tensor:
    """Take the Euclidean norm of all entries together."""
    return torch.stack([tensor.square().sum() for tensor in tensors.values()]).sum().sqrt()
