"""What a search tries to match: a released update, the weights it was computed with, and how images were fed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gradveil.attacks.distances import Distance, direction_of, direction_slope, lay_flat, levelling, sizes_of
from gradveil.client import Simulation
from gradveil.defences import KnownRelease, Released, Sizes, known_model, known_release, known_views
from gradveil.transforms import PolicyDraws, PolicySet
from gradveil.types import Task, Update


@dataclass(frozen=True, eq=False)
class AssumedDraws:
    """The transformation that each of T×B images is assumed to have gone through: T·B draws."""

    policies: PolicySet
    draws: PolicyDraws
    batch: int

    def __call__(self, pixels: Tensor) -> Tensor:
        """Transform T×B×C×H×W, differentiably."""
        return self.policies.differentiable(pixels.flatten(0, 1), self.draws).view(pixels.shape)

    def keep(self, rows: Tensor) -> "AssumedDraws":
        """Keep the draws of the runs at `rows` only."""
        images = torch.arange(len(self.draws)).view(-1, self.batch)
        return replace(self, draws=self.draws.take(images[rows].flatten()))

    def repeat(self, runs: int) -> "AssumedDraws":
        """Use the same draws in so many runs."""
        return replace(self, draws=PolicyDraws.join([self.draws] * runs))


@dataclass(frozen=True, eq=False)
class Observation:
    """T released updates of the same kind, side by side, laid flat; `draws` is None if images are fed as they are.

    `factors`, T×P, and `levelled`, the direction of the updates times these, are there once the parameters have been
    levelled; `release` is how updates are known to be released.
    """

    simulation: Simulation
    released: Tensor
    sizes: Sizes
    draws: AssumedDraws | None = None
    factors: Tensor | None = None
    levelled: Tensor | None = None
    release: KnownRelease = field(default_factory=KnownRelease)

    def feed(self, pixels: Tensor) -> Tensor:
        """Return what the model would be fed, T×B×C×H×W."""
        return pixels if self.draws is None else self.draws(pixels)

    def candidate(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """Compute what would have been released for these images, T×P; differentiable in the images."""
        return self.release(self.simulation.flat(self.feed(pixels), labels, self.sizes), self.sizes)

    def measure(self, distance: Distance, candidate: Tensor) -> tuple[Tensor, Tensor]:
        """Measure how far a candidate, T×P, is from what was released, and the slope with respect to it."""
        if self.release.rounding is None:
            return distance(candidate, self.released, self.sizes)
        weights = self.release.rounding.weights(candidate)
        distances, slope = distance(candidate * weights, self.released * weights, self.sizes)
        return distances, slope * weights

    def levelled_slope(self, candidate: Tensor) -> Tensor:
        """Compute the slope of the distance between directions, measured in levelled parameters."""
        assert self.factors is not None
        assert self.levelled is not None
        return direction_slope(candidate * self.factors, self.levelled).mul_(self.factors)

    def level(self, pixels: Tensor, labels: Tensor) -> "Observation":
        """Level the parameters by how far the update of these images, T×B×C×H×W, is off in each of them."""
        candidate = self.candidate(pixels, labels).detach()
        factors = levelling(candidate, self.released, self.sizes)
        return replace(self, factors=factors, levelled=direction_of(self.released * factors))

    def keep(self, rows: Tensor) -> "Observation":
        """Go on with the runs at `rows` only."""
        draws = None if self.draws is None else self.draws.keep(rows)
        factors, levelled = (None if one is None else one[rows] for one in (self.factors, self.levelled))
        release, released = self.release.keep(rows), self.released[rows]
        return replace(self, released=released, draws=draws, factors=factors, levelled=levelled, release=release)


def observe(task: Task, updates: Sequence[Update], targets: Tensor, draws: AssumedDraws | None = None) -> Observation:
    """Lay updates side by side for several runs: `targets` says which update each run has to match."""
    tensors = {name: torch.stack([updates[target].tensors[name] for target in targets]) for name in updates[0].tensors}
    sizes = sizes_of(tensors)
    flat = lay_flat(tensors, sizes)
    known = describe_release(task, updates[0], flat, sizes)
    simulation = simulate(task, updates[0])
    return Observation(simulation, flat, sizes, draws, release=known)


def describe_release(task: Task, update: Update, flat: Tensor, sizes: Sizes) -> KnownRelease:
    """Put together what the attacker knows of how such updates, laid flat, T×P, were released."""
    steps = update.local.count_steps(update.images) if update.local.takes_steps else 1
    model = known_model(task.known_defences, task.model, update)
    released = Released(flat, sizes, model, update.images, task.participants, steps)
    return known_release(task.known_defences, released, task.participants)


def simulate(task: Task, update: Update) -> Simulation:
    """Simulate the clients behind such updates, with what is known of the pictures and of the draws behind this one."""
    model = known_model(task.known_defences, task.model, update)
    views = known_views(task.known_defences)
    return Simulation(model, task.loss, update.local, task.shape, task.participants, views)
