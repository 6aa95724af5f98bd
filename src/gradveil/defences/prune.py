"""Release the large entries of an update only."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import ZEROES, KnownRelease, Released, hide_zeroes
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Prune(Parametrised):
    """Set the `percent` % smallest entries of every tensor to zero (the papers' pruning)."""

    percent: float

    name: ClassVar[str] = "prune"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = ZEROES
    allowed: ClassVar[str] = "write prune:P with the percentage to drop of each tensor, 0 ≤ P < 100, such as prune:95"

    def is_allowed(self) -> bool:
        return 0 <= self.percent < 100

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        pruned = {
            name: drop_smallest(tensor, int(tensor.numel() * self.percent / 100))
            for name, tensor in update.tensors.items()
        }
        return replace(update, tensors=pruned)

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        return hide_zeroes(known, released)


@dataclass(frozen=True, repr=False)
class TopK(Parametrised):
    """Keep the `percent` % largest entries of the update as a whole, at least one."""

    percent: float

    name: ClassVar[str] = "topk"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = ZEROES
    allowed: ClassVar[str] = "write topk:P with the percentage to keep of the whole update, 0 < P ≤ 100, such as topk:1"

    def is_allowed(self) -> bool:
        return 0 < self.percent <= 100

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        flat = torch.cat([tensor.flatten() for tensor in update.tensors.values()])
        kept = max(1, round(flat.numel() * self.percent / 100))
        sizes = [tensor.numel() for tensor in update.tensors.values()]
        parts = torch.split(drop_smallest(flat, flat.numel() - kept), sizes)
        tensors = {
            name: part.view(tensor.shape) for (name, tensor), part in zip(update.tensors.items(), parts, strict=True)
        }
        return replace(update, tensors=tensors)

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        return hide_zeroes(known, released)


def drop_smallest(tensor: Tensor, count: int) -> Tensor:
    """Copy a tensor with its `count` entries of smallest magnitude set to zero; of equals the first go."""
    flat = tensor.flatten().clone()
    flat[flat.abs().argsort(stable=True)[:count]] = 0
    return flat.view(tensor.shape)
