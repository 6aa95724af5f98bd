"""Percentile privacy: share the larger entries, none above a cap (Shokri and Shmatikov, 2015; NVFlare's filter)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import Capped, KnownRelease, Released
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Percentile(Parametrised):
    """Set entries below the `percent` percentile of all magnitudes to zero, and cut the others to ±`gamma`.

    As NVFlare's PercentilePrivacy, with its defaults: the change of several local steps is first divided by their
    number and multiplied by it afterwards, and numbers that stand alone are left as they are.
    """

    percent: float = 10.0
    gamma: float = 0.01

    name: ClassVar[str] = "percentile"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = "that an entry of 0 was hidden, and that one at the cap was at least as large"
    allowed: ClassVar[str] = (
        "write percentile or percentile:percent=P:gamma=G with 0 ≤ P ≤ 100 and the largest entry G above 0"
    )

    def is_allowed(self) -> bool:
        return 0 <= self.percent <= 100 and 0 < self.gamma < math.inf

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        steps = count_steps(update)
        cutoff = find_percentile([tensor / steps for tensor in update.tensors.values()], self.percent)
        tensors = {name: self.cut(tensor / steps, cutoff) * steps for name, tensor in update.tensors.items()}
        return replace(update, tensors=tensors)

    def cut(self, tensor: Tensor, cutoff: Tensor) -> Tensor:
        if tensor.dim() == 0:
            return tensor
        return torch.where(tensor.abs() < cutoff, torch.zeros_like(tensor), tensor).clamp(-self.gamma, self.gamma)

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        """Leave out zeros, and let candidates go beyond the cap where the release stands at it."""
        hidden = known.hide(released.tensor == 0)
        if released.participants > 1:
            return hidden
        cap = self.gamma * released.steps
        at_cap = released.tensor.abs() >= cap * (1 - CLOSE)
        return hidden.then(Capped(torch.where(at_cap, released.tensor, math.inf)))


CLOSE = 1e-5
"""Within this share of the cap an entry stands at it: dividing by the number of steps and back rounds."""


def count_steps(update: Update) -> int:
    """Count the local steps behind an update; 1 for a gradient."""
    return update.local.count_steps(update.images) if update.local.takes_steps else 1


def find_percentile(tensors: list[Tensor], percent: float) -> Tensor:
    """Find the percentile of all magnitudes together, between two of them by linear interpolation."""
    sizes = torch.cat([tensor.abs().flatten() for tensor in tensors]).sort().values
    place = percent / 100 * (len(sizes) - 1)
    low = min(int(place), max(0, len(sizes) - 2))
    return torch.lerp(sizes[low], sizes[min(low + 1, len(sizes) - 1)], place - low)
