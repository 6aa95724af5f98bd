"""The loop of gradient matching: many runs side by side, each on its own."""

import math
from collections.abc import Iterator
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.descent import Descent
from gradveil.attacks.objective import Evaluation, Objective
from gradveil.attacks.points import Points
from gradveil.attacks.restarts import Restarts
from gradveil.attacks.stages import SecondStage
from gradveil.attacks.trace import HISTORY, Snapshot, Trace
from gradveil.types import Reconstruction


@final
class Runs:
    """One tensor batch of T runs under way: `points` move as `descent` says, down `objective`.

    `rows` are the numbers of the runs that are still there.
    """

    def __init__(
        self,
        objective: Objective,
        points: Points,
        descent: Descent,
        restarts: Restarts,
        second_stage: SecondStage | None = None,
    ) -> None:
        self.objective, self.points, self.descent = objective, points, descent
        self.restarts, self.second_stage = restarts, second_stage
        self.rows = torch.arange(len(points))
        self.first_distances: Tensor | None = None
        self.trace = Trace(len(points))
        # Held until the next one is there: memory that is freed in between goes back to the system, which costs 10%.
        self.latest: Evaluation | None = None
        self.restart_optimiser()

    def restart_optimiser(self) -> None:
        self.optimiser = self.descent.optimiser(self.points.flat.detach())

    def run(self) -> Iterator[int]:
        """Take every step; yield the number of steps done."""
        steps = self.descent.steps
        every = max(1, steps // HISTORY)
        prunings = self.restarts.prune_steps(steps)
        scale_changes = self.descent.scale_changes()
        for step in range(steps):
            self.change_stage(step)
            if step in scale_changes:
                self.points.rescale(scale_changes[step])
                self.restart_optimiser()  # its memory is of another space
            self.take_step(step, step % every == 0 or step in prunings, step in prunings)
            if self.descent.tolerance and step % every == 0:
                self.stop_matched(step)
            if len(self.rows) == 0:
                break
            yield step + 1
        if len(self.rows):
            self.note(steps, self.evaluate())
            self.end(torch.ones(len(self.rows), dtype=torch.bool))

    def change_stage(self, step: int) -> None:
        """Begin the second stage, or end it for runs that it does not help, if it is time."""
        if self.second_stage is None:
            return
        if step == self.second_stage.first_step(self.descent.steps):
            self.objective.begin_stage(self.points)
        if step == self.second_stage.check_step(self.descent.steps):
            self.objective.roll_back(self.points)

    def take_step(self, step: int, noted: bool, pruned: bool) -> None:
        """Take the iterations of one step; note where they begin, and drop the worse runs there."""
        for iteration in range(self.descent.optimiser.iterations):
            now = self.evaluate()
            if noted and iteration == 0:
                self.note(step, now)
                if pruned:
                    self.prune()
                    now = self.evaluate()
            slope = self.objective.slope(self.points, now, step, self.descent.steps)
            direction = self.descent.sign(slope, step, self.descent.steps)
            self.points.move(self.optimiser.move(direction, self.descent.rate(step)))
        if self.descent.box:
            self.points.clamp()

    def evaluate(self) -> Evaluation:
        self.latest = self.objective.evaluate(self.points)
        return self.latest

    def note(self, step: int, now: Evaluation) -> None:
        """Write down where every run is."""
        self.first_distances = now.distances if self.first_distances is None else self.first_distances
        alike = {name: values.tolist() for name, values in self.objective.similarities(now).items()}
        pixels = self.points.pixels().detach().clamp(0, 1)
        self.trace.note(Snapshot(step, self.rows.tolist(), now.distances.tolist(), alike, pixels))

    def prune(self) -> None:
        """Drop the worse half of the runs of every target, by the distances just noted; the loss alone chooses."""
        distances = torch.tensor(self.trace.snapshots[-1].distances).nan_to_num(math.inf)
        targets = self.objective.targets
        stays = torch.zeros(len(self.rows), dtype=torch.bool)
        for target in set(targets.tolist()):
            runs = (targets == target).nonzero().flatten()
            best = distances[runs].argsort(stable=True)[: (len(runs) + 1) // 2]
            stays[runs[best]] = True
        self.end(~stays)

    def stop_matched(self, step: int) -> None:
        """End the runs that have matched as far as asked, or that are lost."""
        assert self.first_distances is not None
        now = self.evaluate()
        done = (now.distances <= self.descent.tolerance * self.first_distances) | ~now.distances.isfinite()
        if done.any():
            self.note(step + 1, now)
            self.end(done.cpu())

    def end(self, done: Tensor) -> None:
        """Turn the runs where `done` is true into results and go on with the others."""
        places = done.nonzero().flatten().tolist()
        self.trace.end({place: int(self.rows[place]) for place in places}, self.points, self.objective)
        self.keep((~done).nonzero().flatten())

    def keep(self, rows: Tensor) -> None:
        """Go on with the runs at `rows` only."""
        self.rows = self.rows[rows]
        self.first_distances = None if self.first_distances is None else self.first_distances[rows]
        self.objective.keep(rows)
        self.points.keep(rows)
        self.optimiser.keep(rows)

    def results(self) -> list[Reconstruction]:
        """List the result of every run, in order."""
        return self.trace.results()
