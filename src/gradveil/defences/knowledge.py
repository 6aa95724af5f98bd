"""What an attacker who knows how updates are released can use: candidates are compared as they would look."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import final

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
    """T released updates of `images` images each, laid flat, T×P, and the model that they are of.

    Each is the mean over so many `participants`, and of so many local `steps` if it is a change of weights.
    """

    tensor: Tensor
    sizes: Sizes
    model: nn.Module
    images: int
    participants: int = 1
    steps: int = 1


class RowForm(ABC):
    """A form that is another one for each of T updates."""

    @abstractmethod
    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:
        """Bring a candidate, T×P, to the form that is released."""

    @abstractmethod
    def keep(self, rows: Tensor) -> "RowForm":
        """Keep the updates at `rows` only."""


@dataclass(frozen=True, eq=False)
class KnownRelease:
    """How T updates are known to have been released, so far as a candidate can be made to look alike.

    `shown`, T×P, marks the entries that still say something if others were zeroed or drawn; `forms` are applied to a
    candidate in order; `deviation` is the standard deviation of the noise in every entry. `rounding`, if there is one,
    weighs entries by how exactly they were rounded.
    """

    shown: Tensor | None = None
    forms: tuple[Form, ...] = ()
    deviation: float = 0.0
    rounding: "Rounding | None" = None

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
        forms = tuple(form.keep(rows) if isinstance(form, RowForm) else form for form in self.forms)
        shown = None if self.shown is None else self.shown[rows]
        rounding = None if self.rounding is None else self.rounding.keep(rows)
        return replace(self, shown=shown, forms=forms, rounding=rounding)

    def then(self, form: Form) -> "KnownRelease":
        """Bring candidates to one more form."""
        return replace(self, forms=(*self.forms, form))


@final
@dataclass(frozen=True, eq=False)
class Capped(RowForm):
    """Cut a candidate where the release stands at a cap: `caps`, T×P, are the released entries there, else infinite.

    Elsewhere the candidate stays as it is, so that one which is too large there has a slope.
    """

    caps: Tensor

    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:  # noqa: ARG002
        beyond = candidate * self.caps.sign() > self.caps.abs()
        return torch.where(beyond & self.caps.isfinite(), self.caps, candidate)

    def keep(self, rows: Tensor) -> "Capped":
        return Capped(self.caps[rows])


@final
@dataclass(frozen=True, eq=False)
class TooSmall(RowForm):
    """Let a candidate's entry be 0 if it is too small to be released: `bounds`, T×P, are 0 where it was released.

    A larger entry counts by what it is above the bound, so that it has a slope.
    """

    bounds: Tensor

    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:  # noqa: ARG002
        return candidate - candidate.clamp(-self.bounds, self.bounds)

    def keep(self, rows: Tensor) -> "TooSmall":
        return TooSmall(self.bounds[rows])


@final
@dataclass(frozen=True, eq=False)
class NormsOnly(RowForm):
    """Give every parameter of a candidate the released direction, T×P, so that its norm alone is compared."""

    released: Tensor

    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float) -> Tensor:  # noqa: ARG002
        lengths = list(sizes.values())
        pairs = zip(torch.split(candidate, lengths, 1), torch.split(self.released, lengths, 1), strict=True)
        return torch.cat([theirs * (length(ours) / length(theirs)) for ours, theirs in pairs], 1)

    def keep(self, rows: Tensor) -> "NormsOnly":
        return NormsOnly(self.released[rows])


LEAST_VARIANCE = 0.02
"""The least variance of a rounded entry, in squared steps: a candidate that stands at a step need not be the image."""


@final
@dataclass(frozen=True, eq=False)
class Rounding:
    """Entries that were rounded at random to multiples of `steps`, T×P.

    An entry f steps above a multiple is released with the variance f·(1 − f): nearly exactly where f is 0 or 1, which
    in a large step is most entries, and with the noise of a coin where it is ½.
    """

    steps: Tensor

    def weights(self, candidate: Tensor) -> Tensor:
        """Weigh entries, T×P, by the inverse deviation that the candidate would have been rounded with."""
        places = candidate.detach() / self.steps
        above = places - places.floor()
        return 1 / (self.steps * (above * (1 - above)).clamp(min=LEAST_VARIANCE).sqrt())

    def keep(self, rows: Tensor) -> "Rounding":
        """Keep the updates at `rows` only."""
        return Rounding(self.steps[rows])


def length(rows: Tensor) -> Tensor:
    """Return the Euclidean norm of each row, T×1, with a slope everywhere."""
    return (rows.square().sum(1, keepdim=True) + TINY).sqrt()


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
