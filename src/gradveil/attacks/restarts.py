"""Several runs for one target, of which the best one counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

from gradveil.errors import SettingsError
from gradveil.types import Reconstruction


@final
@dataclass(frozen=True)
class Restarts:
    """How many runs each target gets; the one with the lowest distance wins.

    At each share of the steps in `prune` the worse half of a target's runs is dropped. `together` is how many runs, of
    all targets, are one tensor batch; the runs of one target always are.
    """

    count: int = 1
    prune: tuple[float, ...] = ()
    together: int = 16

    def __post_init__(self) -> None:
        if min(self.count, self.together) < 1:
            raise SettingsError(f"{self.count} restarts, {self.together} together: each must be at least 1")
        if not all(0 < share < 1 for share in self.prune):
            raise SettingsError(f"pruning at {self.prune}: give shares of the steps between 0 and 1")

    def prune_steps(self, steps: int) -> set[int]:
        """List the steps at which runs are dropped."""
        return {math.ceil(share * steps) for share in self.prune}

    def mean_count(self) -> float:
        """Average the number of a target's runs over the steps; draws of a policy do not count."""
        alive, total = self.count, 0.0
        for begin, end in pairwise([0.0, *sorted(self.prune), 1.0]):
            total += alive * (end - begin)
            alive = (alive + 1) // 2
        return total


def best_restart(results: Sequence[Reconstruction]) -> Reconstruction:
    """Keep the restart with the lowest matching loss; one that failed can win only if all did."""
    best = min(results, key=lambda result: result.matching_loss if result.status == "ok" else math.inf)
    if best.status == "ok" or len(results) == 1:
        return best
    return replace(best, reason=f"each of {len(results)} restarts failed; the first one: {best.reason}")
