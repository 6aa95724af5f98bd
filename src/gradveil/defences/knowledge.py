"""What an attacker who knows how updates are released can use: candidates are compared as they would look."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

Sizes = Mapping[str, int]
"""How many entries each parameter takes up, in their order."""
Form = Callable[[Tensor, Sizes, float], Tensor]
"""Brings a candidate, T×P, to the form that is released; differentiable unless its last argument, softness, is 0."""
SOFTNESS = 0.5
"""From how many mean magnitudes on an entry counts as large when signs are softened; 0.1 to 1 were tried."""
TINY = 1e-30
"""Keeps a slope finite where a gradient vanishes."""


@dataclass(frozen=True, eq=False)
class Released:
    """T released updates of `images` images each, laid flat, T×P, and the model that they are of."""

    tensor: Tensor
    sizes: Sizes
    model: nn.Module
    images: int


@dataclass(frozen=True, eq=False)
class KnownRelease:
    """How T updates are known to have been released, so far as a candidate can be made to look alike.

    `shown`, T×P, marks the entries that still say something if others were zeroed or drawn; `forms` are applied to a
    candidate in order; `deviation` is the standard deviation of the noise in every entry.
    """

    shown: Tensor | None = None
    forms: tuple[Form, ...] = ()
    deviation: float = 0.0

    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float = SOFTNESS) -> Tensor:
        """Bring a candidate, T×P, to what would be released."""
        if self.shown is not None:
            candidate = candidate * self.shown
        for form in self.forms:
            candidate = form(candidate, sizes, softness)
        return candidate

    def hide(self, hidden: Tensor) -> "KnownRelease":
        """Leave out the entries where `hidden`, T×P, is true."""
        return replace(self, shown=~hidden if self.shown is None else self.shown & ~hidden)

    def keep(self, rows: Tensor) -> "KnownRelease":
        """Keep the updates at `rows` only."""
        return self if self.shown is None else replace(self, shown=self.shown[rows])


ZEROES = "that entries of 0 were hidden, and say nothing"


def hide_zeroes(known: KnownRelease, released: Released) -> KnownRelease:
    """Leave out entries that are 0: someone zeroed them."""
    return known.hide(released.tensor == 0)


def soften_signs(candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:
    """Bring the entries of every parameter near their signs, times its mean magnitude: the larger, the nearer."""
    return torch.cat([soften(part, softness) for part in torch.split(candidate, list(sizes.values()), 1)], 1)


def soften(part: Tensor, softness: float) -> Tensor:
    size = part.abs()
    mean = size.mean(1, keepdim=True)
    return mean * part / (size + softness * mean + TINY)
