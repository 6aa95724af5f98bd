"""What a search tries to match: a released update, the weights it was computed with, and how images were fed."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gradveil.attacks.distances import Distance, levelling
from gradveil.client import Simulation
from gradveil.defences import KnownRelease, Sizes
from gradveil.transforms import PolicyDraws, PolicySet


@dataclass(frozen=True, eq=False)
class View:
    """The transformation that each of T×B images is supposed to have gone through: T·B draws."""

    policies: PolicySet
    draws: PolicyDraws
    batch: int

    def __call__(self, pixels: Tensor) -> Tensor:
        """Transform T×B×C×H×W, differentiably."""
        fed = self.policies.differentiable(pixels.flatten(0, 1), self.draws)
        return fed.view(pixels.shape)

    def keep(self, rows: Tensor) -> "View":
        images = torch.arange(len(self.draws)).view(-1, self.batch)
        return View(self.policies, self.draws.take(images[rows].flatten()), self.batch)


@dataclass(frozen=True, eq=False)
class Observation:
    """T released updates of the same kind, side by side, laid flat; `view` is None if images are fed as they are.

    `factors`, T×P, are there once the parameters have been levelled; `release` is how updates are known to be released.
    """

    simulation: Simulation
    released: Tensor
    sizes: Sizes
    view: View | None = None
    factors: Tensor | None = None
    release: KnownRelease = field(default_factory=KnownRelease)

    def feed(self, pixels: Tensor) -> Tensor:
        """Return what the model would be fed, T×B×C×H×W."""
        return pixels if self.view is None else self.view(pixels)

    def candidate(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """Compute what would have been released for these images, T×P; differentiable in the images."""
        return self.release(self.simulation.flat(self.feed(pixels), labels, self.sizes), self.sizes)

    def measure(self, distance: Distance, candidate: Tensor) -> tuple[Tensor, Tensor]:
        """Measure how far a candidate, T×P, is from what was released, and the slope with respect to it."""
        return distance(candidate, self.released, self.sizes)

    def levelled_slope(self, distance: Distance, candidate: Tensor) -> Tensor:
        """Give the slope of a distance that is measured in levelled parameters."""
        assert self.factors is not None
        _, slope = distance(candidate * self.factors, self.released * self.factors, self.sizes)
        return slope * self.factors

    def level(self, pixels: Tensor, labels: Tensor) -> "Observation":
        """Level the parameters by how far the update of these images, T×B×C×H×W, is off in each of them."""
        candidate = self.candidate(pixels, labels).detach()
        return replace(self, factors=levelling(candidate, self.released, self.sizes))

    def keep(self, rows: Tensor) -> "Observation":
        """Go on with the runs at `rows` only."""
        view = None if self.view is None else self.view.keep(rows)
        factors = None if self.factors is None else self.factors[rows]
        release = self.release.keep(rows)
        return replace(self, released=self.released[rows], view=view, factors=factors, release=release)
