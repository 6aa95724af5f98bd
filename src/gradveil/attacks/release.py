"""What an attacker who knows how updates are released makes of that: candidates are compared as they would look."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradveil.attacks.distances import TINY, Sizes
from gradveil.types import Task

ZEROING = ("prune:", "topk:", "soteria:")
SIGN = "sign"
SOFTNESS = 0.5
"""From how many mean magnitudes on an entry counts as large when signs are softened; 0.1 to 1 were tried."""


@dataclass(frozen=True, eq=False)
class Release:
    """What is known to happen to T updates before they leave, so far as a candidate can be made to look alike.

    `shown`, T×P, tells the entries that still say something if others were zeroed; `sign` that only signs are left,
    with one magnitude for each parameter tensor.
    """

    shown: Tensor | None = None
    sign: bool = False

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


def known_release(task: Task, released: Tensor) -> Release:
    """Read off the defences that the attacker knows what to make of these updates, T×P."""
    zeroed = any(defence.startswith(ZEROING) for defence in task.known_defences)
    return Release(released != 0 if zeroed else None, SIGN in task.known_defences)
