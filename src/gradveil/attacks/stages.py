"""Second stage of a search: when it is, and each run's state at its start, for rollback."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.observation import Observation
from gradveil.errors import SettingsError


@final
@dataclass(frozen=True)
class SecondStage:
    """From the share `begins_at` of the steps on, follow the slope of the distance between directions.

    It is measured in levelled parameters: the gradients of each parameter are in units of how far those of a flat image
    of the mean colour are from the released ones. What is noted and what chooses among restarts stays the first
    distance. A run that is no nearer by it, a third into the stage, is rolled back and ends along the first distance.
    """

    begins_at: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.begins_at <= 1:
            raise SettingsError(f"a second stage from {self.begins_at} on: give a share of the steps from 0 to 1")

    def first_step(self, steps: int) -> int:
        """Return the step, out of so many, at which the stage begins."""
        return math.ceil(self.begins_at * steps)

    def check_step(self, steps: int) -> int:
        """Return the step at which runs that are no nearer are rolled back."""
        return self.first_step(steps) + (steps - self.first_step(steps)) // 3


@final
@dataclass(frozen=True, eq=False)
class StageStart:
    """Where T runs were when the second stage began: their points, T×N, and their distances, T.

    Noise or missing entries in the released update can lead a run astray, because levelling makes as much of small
    entries as of large ones. A run that was rolled back is no longer `active`.
    """

    points: Tensor
    distances: Tensor
    active: Tensor
    is_everywhere: bool = True
    """Whether all runs are active: then the first distance's slope is of no use."""

    def slope(self, observation: Observation, candidate: Tensor, first_slope: Tensor) -> Tensor:
        """Compute the slope of the stage's distance; runs that were rolled back keep `first_slope`."""
        levelled = observation.levelled_slope(candidate)
        return torch.where(self.active[:, None], levelled, first_slope)

    def find_astray(self, distances: Tensor) -> Tensor:
        """Tell which runs are no nearer than where they began."""
        return self.active & ~(distances < self.distances)

    def deactivate(self, runs: Tensor) -> "StageStart":
        """End the stage for the runs where `runs` is true."""
        active = self.active & ~runs
        return replace(self, active=active, is_everywhere=holds_everywhere(active))

    def keep(self, rows: Tensor) -> "StageStart":
        """Go on with the runs at `rows` only."""
        active = self.active[rows]
        return StageStart(self.points[rows], self.distances[rows], active, holds_everywhere(active))


def holds_everywhere(active: Tensor) -> bool:
    """Tell whether all runs are active; on torch's meta device, which holds no values, nothing is known."""
    return not active.is_meta and bool(active.all())
