"""What an attacker who knows how updates are released makes of that: candidates are compared as they would look."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradveil.attacks.distances import TINY, Sizes, norm_of
from gradveil.defences import Precode, known_deviation, parse_defences
from gradveil.defences.precode import find_bottleneck
from gradveil.types import Task

ZEROING = ("prune:", "topk:", "soteria:")
SIGN = "sign"
SOFTNESS = 0.5
"""From how many mean magnitudes on an entry counts as large when signs are softened; 0.1 to 1 were tried."""
TYPICAL_VARIATION = 0.43
"""The mean total variation of normalised images: 0.44 in Fashion-MNIST, 0.42 in CIFAR-100 (1,000 images each)."""


@dataclass(frozen=True, eq=False)
class Release:
    """What is known to happen to T updates before they leave, so far as a candidate can be made to look alike.

    `shown`, T×P, tells the entries that still say something if others were zeroed or drawn; `sign` that only signs are
    left, with one magnitude for each parameter tensor; `deviation` is that of the noise in every entry.
    """

    shown: Tensor | None = None
    sign: bool = False
    deviation: float = 0.0

    def __call__(self, candidate: Tensor, sizes: Sizes, softness: float = SOFTNESS) -> Tensor:
        """Bring a candidate's gradients, T×P, to what would be released; signs differentiably, unless softness is 0."""
        if self.shown is not None:
            candidate = candidate * self.shown
        if not self.sign:
            return candidate
        return torch.cat([soften(part, softness) for part in torch.split(candidate, list(sizes.values()), 1)], 1)

    def keep(self, rows: Tensor) -> "Release":
        """Go on with the updates at `rows` only."""
        return self if self.shown is None else replace(self, shown=self.shown[rows])


def soften(part: Tensor, softness: float) -> Tensor:
    """Bring entries near their signs, times the mean magnitude: the nearer, the larger they are."""
    size = part.abs()
    mean = size.mean(1, keepdim=True)
    return mean * part / (size + softness * mean + TINY)


def known_release(task: Task, released: Tensor, sizes: Sizes, images: int) -> Release:
    """Read off the defences that the attacker knows what to make of these updates, T×P, of so many images each."""
    zeroed = any(defence.startswith(ZEROING) for defence in task.known_defences)
    shown = released != 0 if zeroed else None
    drawn = known_draws(task, sizes)
    if drawn is not None:
        shown = ~drawn.expand_as(released) if shown is None else shown & ~drawn
    return Release(shown, SIGN in task.known_defences, known_noise(task, images))


def known_draws(task: Task, sizes: Sizes) -> Tensor | None:
    """Tell which entries, P, are of a bottleneck that draws or come after it; None if there are no such, or no others.

    Their gradients are of the client's own draw, and lead astray whoever cannot repeat it (Scheliga et al., 2022,
    arXiv:2208.04767).
    """
    if not any(isinstance(defence, Precode) for defence in parse_defences(task.known_defences)):
        return None
    bottleneck = find_bottleneck(task.model)
    drawn = [bottleneck is not None and name.startswith(bottleneck) for name in sizes]
    if all(drawn) or not any(drawn):
        return None
    counts = torch.tensor(list(sizes.values()))
    return torch.tensor(drawn).repeat_interleave(counts)


def known_noise(task: Task, images: int) -> float:
    """Give the standard deviation of the noise that the attacker knows to be in an update; 0 if it knows of none.

    In the mean of several participants' updates each has its own.
    """
    alone = known_deviation(parse_defences(task.known_defences), images // task.participants)
    return alone / math.sqrt(task.participants)


def misfit(distances: Tensor, released: Tensor, deviation: float) -> Tensor:
    """Give −log p(released | gradient), T, up to a constant, for updates that lie 1 − cosine `distances` away.

    Under normal noise that is ‖released − gradient‖² / 2σ², with the gradient at the length that suits it best.
    """
    noise = (norm_of(released)[:, 0] / deviation).square() / 2
    return noise * (1 - (1 - distances).clamp(min=0).square())


def oddity(variations: Tensor, pixels: int) -> Tensor:
    """Give −log p(image), T, up to a constant, for images of so many values and of these mean total variations.

    Differences between neighbours are taken to be Laplace distributed; there are two for each value, which is free to
    vary in one way only, so each counts half.
    """
    return variations * (pixels / TYPICAL_VARIATION)
