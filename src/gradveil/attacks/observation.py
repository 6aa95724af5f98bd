"""What a search tries to match: a released update, the weights it was computed with, and how images were fed."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from gradveil.attacks.distances import Sizes, lay_flat
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

    The model is this observation's own: its parameters serve as the points to differentiate at.
    """

    model: nn.Module
    loss: Loss
    released: Tensor
    sizes: Sizes
    local: LocalSteps | None = None
    view: View | None = None

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
            return torch.stack([self.gradient(*pair) for pair in zip(fed, labels, strict=True)])
        return lay_flat(updates_apart(self.model, self.loss, fed, labels, self.local), self.sizes)

    def gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        """Take the gradient of one run's images without the detour over `vmap`."""
        loss = self.loss(self.model(images.contiguous(memory_format=torch.channels_last)), labels)
        found = torch.autograd.grad(loss, self.parameters, create_graph=True)
        return torch.cat([part.flatten() for part in found])

    def keep(self, rows: Tensor) -> "Observation":
        """Go on with the runs at `rows` only."""
        view = None if self.view is None else self.view.keep(rows)
        return Observation(self.model, self.loss, self.released[rows], self.sizes, self.local, view)
