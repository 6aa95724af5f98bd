"""The end of a search, along another distance than the one it began with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.attacks.distances import Distance
from gradveil.attacks.observation import Observation


@dataclass(frozen=True, eq=False)
class Finish:
    """What T runs finish along, and where they stood when they began to: their points, T×N, and their distances, T.

    Noise or missing entries in the released update can lead a run astray, because levelling makes as much of small
    entries as of large ones. Such runs are no longer `active`: they have gone back to where they stood.
    """

    measure: Distance
    points: Tensor
    distances: Tensor
    active: Tensor

    def slope(self, seen: Observation, candidate: Tensor, otherwise: Tensor) -> Tensor:
        """Give the slope of the finishing distance, and `otherwise` for the runs that have gone back."""
        levelled = seen.levelled_slope(self.measure, candidate)
        return torch.where(self.active[:, None], levelled, otherwise)

    def astray(self, distances: Tensor) -> Tensor:
        """Tell which runs are no nearer than where they began, by the loss that also chooses among restarts."""
        return self.active & ~(distances < self.distances)

    def keep(self, rows: Tensor) -> "Finish":
        """Go on with the runs at `rows` only."""
        return Finish(self.measure, self.points[rows], self.distances[rows], self.active[rows])
