"""What a search tries to match: a released update, the weights it was computed with, and how images were fed."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from gradveil.attacks.distances import Distance, Sizes, lay_flat, levelling
from gradveil.attacks.release import Release
from gradveil.client import updates_apart
from gradveil.transforms import PolicyDraws, PolicySet, parse_policy
from gradveil.types import LocalSteps, Loss, Task

POLICY = "policy:"
ALONE = 2
"""Up to this many runs take their gradients one by one: measured on three models, `vmap` pays from three runs on."""


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


def known_policies(task: Task) -> PolicySet | None:
    """Find the policies that the attacker knows to be in use; the base augmentation is not among them."""
    for defence in task.known_defences:
        if defence.startswith(POLICY):
            return parse_policy(defence.removeprefix(POLICY))
    return None


@dataclass(frozen=True, eq=False)
class Observation:
    """T released updates of the same kind, side by side, laid flat; `view` is None if images are fed as they are.

    `factors`, T×P, are there once the parameters have been levelled; `release` is how updates are known to be released.
    The model is this observation's own: its parameters serve as the points to differentiate at.
    """

    model: nn.Module
    loss: Loss
    released: Tensor
    sizes: Sizes
    local: LocalSteps | None = None
    view: View | None = None
    factors: Tensor | None = None
    release: Release = field(default_factory=Release)

    @cached_property
    def parameters(self) -> list[Tensor]:
        """List the parameters whose gradients were released, in their order."""
        known = dict(self.model.named_parameters())
        return [known[name] for name in self.sizes]

    def feed(self, pixels: Tensor) -> Tensor:
        """Give what the model would be fed, T×B×C×H×W."""
        return pixels if self.view is None else self.view(pixels)

    def candidate(self, pixels: Tensor, labels: Tensor) -> Tensor:
        """Compute what would have been released for these images, T×P; differentiable in the images.

        A few runs are faster one by one, more of them side by side.
        """
        fed = self.feed(pixels)
        if self.local is None and len(fed) <= ALONE:
            found = torch.stack([self.gradient(*pair) for pair in zip(fed, labels, strict=True)])
        else:
            found = lay_flat(updates_apart(self.model, self.loss, fed, labels, self.local), self.sizes)
        return self.release(found, self.sizes)

    def gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        """Take the gradient of one run's images without the detour over `vmap`."""
        loss = self.loss(self.model(images.contiguous(memory_format=torch.channels_last)), labels)
        found = torch.autograd.grad(loss, self.parameters, create_graph=True)
        return torch.cat([part.flatten() for part in found])

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
