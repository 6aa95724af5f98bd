"""What a search tries to match: a released update, the weights it was computed with, and how images were fed."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradveil.attacks.distances import Gradients
from gradveil.client import updates_apart
from gradveil.transforms import PolicyDraws, PolicySet, parse_policy
from gradveil.types import LocalSteps, Loss, Task

POLICY = "policy:"


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
    """T released updates of the same kind, side by side; `view` is None if images are fed as they are."""

    model: nn.Module
    loss: Loss
    released: Gradients
    local: LocalSteps | None = None
    view: View | None = None

    def feed(self, pixels: Tensor) -> Tensor:
        """Give what the model would be fed, T×B×C×H×W."""
        return pixels if self.view is None else self.view(pixels)

    def candidate(self, pixels: Tensor, labels: Tensor) -> Gradients:
        """Compute what would have been released for these images."""
        return updates_apart(self.model, self.loss, self.feed(pixels), labels, self.local)

    def keep(self, rows: Tensor) -> "Observation":
        """Go on with the runs at `rows` only."""
        released = {name: tensor[rows] for name, tensor in self.released.items()}
        view = None if self.view is None else self.view.keep(rows)
        return Observation(self.model, self.loss, released, self.local, view)
