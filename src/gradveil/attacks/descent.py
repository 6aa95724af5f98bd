"""How images are moved: the optimiser, its learning rate over the steps, and the resolution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from torch import Tensor

from gradveil.attacks.optimisers import Adam, Optimiser
from gradveil.errors import SettingsError

Schedule = Callable[[int, int], float]
"""Takes a step, counted from 0, and the number of steps; returns a factor for the learning rate."""
Sign = Callable[[Tensor, int, int], Tensor]
"""Takes slopes, a step, counted from 0, and the number of steps; returns what the optimiser gets instead of slopes."""
DROPS = (3 / 8, 5 / 8, 7 / 8)
WARM_UP = 50
"""Steps over which `warm_cosine` raises the learning rate."""


def constant(step: int, steps: int) -> float:  # noqa: ARG001
    """Keep the learning rate."""
    return 1.0


def three_drops(step: int, steps: int) -> float:
    """Divide the learning rate by ten at 3/8, 5/8 and 7/8 of the steps (Geiping et al., 2020)."""
    return float(0.1 ** sum(step >= drop * steps for drop in DROPS))


def cosine_decay(step: int, steps: int) -> float:
    """Lower the learning rate to 0 along half a cosine."""
    return (1 + math.cos(math.pi * step / steps)) / 2


def warm_cosine(step: int, steps: int) -> float:
    """Raise the learning rate from 0 over 50 steps, then lower it along half a cosine of the length of all steps.

    As breaching's `modern` has it: at the end of few steps the rate has not fallen to 0 yet.
    """
    if step <= WARM_UP:
        return step / WARM_UP
    return cosine_decay(step - WARM_UP - 1, steps)


def hard_sign(slopes: Tensor, step: int, steps: int) -> Tensor:  # noqa: ARG001
    """Keep the sign alone (Geiping et al., 2020)."""
    return slopes.sign()


def soft_sign(slopes: Tensor, step: int, steps: int) -> Tensor:
    """Bend steep slopes only: tanh(r·slope)/r, where r falls from 1 to 0 over the steps, as breaching's `modern` does.

    The slopes of a cosine are small, so this all but keeps them.
    """
    share = 1 - step / steps
    return (slopes * share).tanh_() / share


def unsigned(slopes: Tensor, step: int, steps: int) -> Tensor:  # noqa: ARG001
    """Keep the slopes as they are."""
    return slopes


@final
@dataclass(frozen=True)
class Descent:
    """How many steps are taken, and how.

    `sign` is what is kept of a slope; `box` keeps pixels valid. `scales` are the resolutions that take turns,
    coarse first: (2, 1) spends half of the steps at half the resolution. A run stops once its distance falls to
    `tolerance` of what it started with.
    """

    optimiser: type[Optimiser] = Adam
    learning_rate: float = 0.1
    schedule: Schedule = three_drops
    steps: int = 4800
    sign: Sign = hard_sign
    box: bool = True
    scales: tuple[int, ...] = (1,)
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise SettingsError(f"{self.steps} steps: give 1 or more")
        if not 0 < self.learning_rate < math.inf:
            raise SettingsError(f"learning rate {self.learning_rate}: it must be above 0")
        if not self.scales or self.scales[-1] != 1 or min(self.scales) < 1:
            raise SettingsError(f"scales {self.scales}: give whole numbers from 1, the last of them 1")
        if not 0 <= self.tolerance < math.inf:
            raise SettingsError(f"tolerance {self.tolerance}: it must be 0 or more")

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return self.learning_rate * self.schedule(step, self.steps)

    def scale_changes(self) -> dict[int, int]:
        """Map the steps at which the resolution changes to the new scale."""
        return {place * self.steps // len(self.scales): scale for place, scale in enumerate(self.scales) if place > 0}

    @property
    def full_resolution_from(self) -> float:
        """The share of the steps after which the resolution is the full one."""
        return (len(self.scales) - 1) / len(self.scales)
