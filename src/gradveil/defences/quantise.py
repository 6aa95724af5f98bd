"""Release few bits of every entry."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from gradveil.defences.base import Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import KnownRelease, Released, Rounding, soften_signs
from gradveil.types import Update


@dataclass(frozen=True, repr=False)
class Sign(Parametrised):
    """Release the sign of every entry, times the mean magnitude of its tensor.

    Differs from Bernstein et al. (2018), who release the sign alone: with the magnitude (Karimireddy et al., 2019) the
    learning rate of a run without this defence still fits.
    """

    name: ClassVar[str] = "sign"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = "that only signs are left"
    allowed: ClassVar[str] = "write sign; it takes no parameters"

    def is_allowed(self) -> bool:
        return True

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        signs = {name: tensor.sign() * tensor.abs().mean() for name, tensor in update.tensors.items()}
        return replace(update, tensors=signs)

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:  # noqa: ARG002
        return replace(known, forms=(*known.forms, soften_signs))


@dataclass(frozen=True, repr=False)
class Quantise(Parametrised):
    """Round every entry at random, without bias, to one of 2^bits − 1 steps between ± the largest of its tensor.

    Differs from QSGD (Alistarh et al., 2017): the steps span the largest entry, not the norm.
    """

    bits: int

    name: ClassVar[str] = "quantise"
    hooks: ClassVar[tuple[Hook, ...]] = ("release",)
    used: ClassVar[str] = (
        "of up to 3 bits how exactly each entry was rounded; of finer ones nothing, because weighing did not help there"
    )
    allowed: ClassVar[str] = "write quantise:BITS with 2 to 16 bits for each entry, such as quantise:4"

    def is_allowed(self) -> bool:
        return 2 <= self.bits <= 16

    def release(self, update: Update, generator: torch.Generator) -> Update:
        rounded = {name: round_at_random(tensor, self.bits, generator) for name, tensor in update.tensors.items()}
        return replace(update, tensors=rounded)

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        """Read the steps off the largest entries, which are rounded to themselves."""
        if self.bits > COARSE or released.participants > 1:
            return known
        parts = torch.split(released.tensor, list(released.sizes.values()), 1)
        steps = [(part.abs().amax(1, keepdim=True) / most_steps(self.bits)).expand_as(part) for part in parts]
        return replace(known, rounding=Rounding(torch.cat(steps, 1).clamp(min=1e-30)))


COARSE = 3
"""Up to so many bits the attacker weighs entries; tried with 2, 3 and 4."""


def most_steps(bits: int) -> int:
    """Count the steps on either side of 0."""
    return (1 << (bits - 1)) - 1


def round_at_random(tensor: Tensor, bits: int, generator: torch.Generator) -> Tensor:
    """Round to one of the two nearest steps, to each as often as it is near."""
    most = most_steps(bits)
    step = tensor.abs().max().clamp(min=1e-30) / most
    draws = torch.rand(tensor.shape, generator=generator, device=generator.device, dtype=tensor.dtype).to(tensor.device)
    # Clamped, because the sum can round up to a step beyond the last.
    steps: Tensor = (tensor / step + draws).floor().clamp(-most, most)
    return steps * step
