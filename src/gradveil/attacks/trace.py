"""What is noted of runs under way, and the results that are made of it."""

import math
from dataclasses import dataclass
from typing import final

from torch import Tensor

from gradveil.attacks.objective import Objective
from gradveil.attacks.points import Points
from gradveil.types import Reconstruction

HISTORY = 30
"""About how many times a run is noted."""
PICTURES = 10
"""About how many of these times its picture is kept."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What the runs `rows` had reached after a number of steps."""

    step: int
    rows: list[int]
    distances: list[float]
    similarities: dict[str, list[float]]
    pixels: Tensor


@final
class Trace:
    """The snapshots of T runs, and the results of those that have ended."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.snapshots: list[Snapshot] = []
        self.ended: dict[int, Reconstruction] = {}

    def note(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)

    def end(self, rows: dict[int, int], points: Points, objective: Objective) -> None:
        """Turn runs into results: `rows` maps their present places to their rows."""
        observation = objective.observations[0]
        images, labels = points.pixels().detach().clamp(0, 1), points.chosen_labels()
        fed = None if observation.draws is None else observation.feed(images).detach()
        for place, row in rows.items():
            self.ended[row] = self.make_result(
                row,
                images[place].clone(),
                labels[place].clone(),
                None if fed is None else fed[place].clone(),
                observation.simulation.approximations,
            )

    def make_result(
        self, row: int, images: Tensor, labels: Tensor, fed: Tensor | None, approximations: tuple[str, ...]
    ) -> Reconstruction:
        """Collect what was noted of one run."""
        noted = [(snapshot, snapshot.rows.index(row)) for snapshot in self.snapshots if row in snapshot.rows]
        history = tuple((snapshot.step, snapshot.distances[place]) for snapshot, place in noted)
        shown = noted[:: max(1, len(noted) // PICTURES)]
        reason = find_failure(history, images)
        return Reconstruction(
            images,
            labels,
            history[-1][1],
            "failed" if reason else "ok",
            history,
            tuple(
                (snapshot.step, {name: values[place] for name, values in snapshot.similarities.items()})
                for snapshot, place in noted
            ),
            tuple((snapshot.step, snapshot.pixels[place]) for snapshot, place in shown),
            fed,
            reason,
            approximations,
        )

    def results(self) -> list[Reconstruction]:
        """List the result of every run, in the order of their rows."""
        return [self.ended[row] for row in range(self.runs)]


def find_failure(history: tuple[tuple[int, float], ...], images: Tensor) -> str:
    """Say what went wrong in a run; nothing if it ended with a finite loss and finite images."""
    last, loss = history[-1]
    if not math.isfinite(loss):
        lost = next(step for step, loss in history if not math.isfinite(loss))
        return f"the matching loss was not finite at step {lost}"
    if not bool(images.isfinite().all()):
        return f"the images were not finite at step {last}"
    return ""
