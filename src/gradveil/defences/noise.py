"""Noise on every entry of the update (Zhu et al., 2019; the papers' Gaussian and Laplacian)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Gaussian(Parametrised):
    """Add normal noise of standard deviation `scale`."""

    scale: float

    name: ClassVar[str] = "gaussian"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = "the strength of the noise"
    allowed: ClassVar[str] = "write gaussian:S with a standard deviation S of 0 or more, such as gaussian:1e-3"

    def is_allowed(self) -> bool:
        return 0 <= self.scale < math.inf

    def release(self, update: Update, generator: torch.Generator) -> Update:
        noised = {name: tensor + self.scale * normal(tensor, generator) for name, tensor in update.tensors.items()}
        return replace(update, tensors=noised)

    def deviation(self, images: int) -> float:  # noqa: ARG002
        return self.scale


@dataclass(frozen=True, repr=False)
class Laplacian(Parametrised):
    """Add Laplace noise of scale `scale`; its standard deviation is √2 times that."""

    scale: float

    name: ClassVar[str] = "laplacian"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = "the strength of the noise"
    allowed: ClassVar[str] = "write laplacian:S with a scale S of 0 or more, such as laplacian:1e-3"

    def is_allowed(self) -> bool:
        return 0 <= self.scale < math.inf

    def release(self, update: Update, generator: torch.Generator) -> Update:
        noised = {name: tensor + self.scale * laplace(tensor, generator) for name, tensor in update.tensors.items()}
        return replace(update, tensors=noised)

    def deviation(self, images: int) -> float:  # noqa: ARG002
        return math.sqrt(2) * self.scale


def normal(like: Tensor, generator: torch.Generator) -> Tensor:
    """Draw standard normal noise of the shape of `like`, where the generator is, and bring it to where `like` is."""
    return torch.randn(like.shape, generator=generator, device=generator.device, dtype=like.dtype).to(like.device)


def laplace(like: Tensor, generator: torch.Generator) -> Tensor:
    """Draw Laplace noise of scale 1: the difference of two exponential draws."""
    draws = torch.empty((2, *like.shape), device=generator.device, dtype=like.dtype).exponential_(generator=generator)
    return (draws[0] - draws[1]).to(like.device)
