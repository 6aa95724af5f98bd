"""Gradient matching: find images whose gradient is the released one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch

from gradveil.attacks.base import Attack, Progress, layers_draw_like
from gradveil.attacks.descent import Descent
from gradveil.attacks.distances import Distance, cosine
from gradveil.attacks.knowledge import Knowledge, draw_logits
from gradveil.attacks.objective import Objective
from gradveil.attacks.observation import observe
from gradveil.attacks.orientation import orient
from gradveil.attacks.points import Points, shrink
from gradveil.attacks.priors import Priors
from gradveil.attacks.restarts import Restarts, best_restart
from gradveil.attacks.runs import Runs
from gradveil.attacks.stages import SecondStage
from gradveil.attacks.starts import Noise, Start
from gradveil.attacks.statistics import StatisticsGap, known_statistics, shows_statistics
from gradveil.defences import known_smooth, shows_draws
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.machine import keep_memory
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update


@final
@dataclass(frozen=True)
class GradientMatching(Attack):
    """Optimise images until their gradient matches.

    Each field is a value of its own and says how it works: how far gradients are apart, how images are moved, what they
    should look like, how many runs there are, where these begin, what the attacker uses, and whether another distance
    takes over in the end. The default is Inverting Gradients (Geiping et al., 2020).
    """

    distance: Distance = cosine
    descent: Descent = field(default_factory=Descent)
    priors: Priors = field(default_factory=Priors)
    restarts: Restarts = field(default_factory=Restarts)
    start: Start = field(default_factory=Noise)
    knowledge: Knowledge = field(default_factory=Knowledge)
    second_stage: SecondStage | None = None

    def __post_init__(self) -> None:
        if self.knowledge.noise and (
            self.distance is not cosine or self.second_stage is not None or self.priors.relative
        ):
            raise SettingsError(
                "known noise is weighed against the cosine: choose that, no second stage, no relative prior"
            )
        if self.second_stage is None:
            return
        if self.descent.optimiser.one_distance:
            raise SettingsError(
                f"the memory of {self.descent.optimiser.__name__} is of one distance: choose Adam or Nesterov, or no "
                "second stage"
            )
        if self.second_stage.begins_at < self.descent.full_resolution_from:
            raise SettingsError(
                f"a second stage from {self.second_stage.begins_at} of the steps on: it works at full resolution, so "
                f"let it begin at {self.descent.full_resolution_from:.3g} or later"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        known = ["the model and the loss", "the number of images"]
        if self.knowledge.labels:
            known.append("the labels, given or read from the gradient")
        if self.priors.batch_norm:
            known.append("the statistics of batch normalisation, from a trained model or sent along")
        if self.start.needs is not None:
            known.append(self.start.needs)
        if self.knowledge.policy:
            known.append("the set of policies in use, not the draw")
        if self.knowledge.noise:
            known.append("the strength of the noise, not the draw")
        return (*known, "the local steps, if the update is of several")

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        check_updates(updates)
        self.start.check(task)
        if self.priors.batch_norm:
            for update in updates:
                known_statistics(task.model, update)
        self.knowledge.check(task, updates)

    @property
    def gradients_per_step(self) -> int:
        return self.descent.optimiser.iterations

    @property
    def gradients(self) -> int:
        return round(self.descent.steps * self.gradients_per_step * self.restarts.mean_count())

    @property
    def inverts_policy(self) -> bool:
        return self.knowledge.policy

    @property
    def public_images(self) -> int:
        return self.start.public_images

    @property
    def weighs_noise(self) -> bool:
        return self.knowledge.noise

    @property
    def needs_known_defence(self) -> bool:
        return self.knowledge.policy or self.knowledge.noise

    def with_steps(self, steps: int) -> "GradientMatching":
        return replace(self, descent=replace(self.descent, steps=steps))

    def with_budget(self, gradients: int) -> "GradientMatching":
        steps = gradients / (self.gradients_per_step * self.restarts.mean_count())
        return self.with_steps(max(1, math.floor(steps)))

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        keep_memory()
        count, steps = self.runs_per_target(task), self.descent.steps
        size = self.targets_together(task, updates)
        groups = [range(first, min(first + size, len(updates))) for first in range(0, len(updates), size)]
        finished: list[Reconstruction] = []
        for position, group in enumerate(groups):
            sources = [split(generators[index], count) for index in group]
            runs = self.prepare(task, [updates[index] for index in group], sources)
            with layers_draw_like(generators[group[0]]):
                for step in runs.run():
                    if progress is not None:
                        progress(position * steps + step, len(groups) * steps)
            if progress is not None:
                progress((position + 1) * steps, len(groups) * steps)
            results = runs.results()
            finished += [best_restart(results[first : first + count]) for first in range(0, len(results), count)]
        return orient(task, updates, finished)

    def runs_per_target(self, task: Task) -> int:
        """Count the runs of one target: restarts, each with every draw of the policies if these are looked through."""
        return self.restarts.count * self.knowledge.count_draws(task)

    def targets_together(self, task: Task, updates: Sequence[Update]) -> int:
        """Count the targets that are one tensor batch; updates with statistics or draws of their own run one by one."""
        if shows_draws(task.known_defences):
            return 1
        if self.priors.batch_norm and any(shows_statistics(task.model, update) for update in updates):
            return 1
        return max(1, self.restarts.together // self.runs_per_target(task))

    def prepare(self, task: Task, updates: Sequence[Update], sources: Sequence[Sequence[torch.Generator]]) -> Runs:
        """Lay the runs of several targets side by side; `sources` has one generator for each run of each target."""
        targets = torch.tensor([target for target, part in enumerate(sources) for _ in part])
        flat_sources = [source for part in sources for source in part]
        labels = [self.knowledge.start_labels(task, update) for update in updates]
        own = [self.start.for_update(task, update) for update in updates]
        starts = [
            own[target].draw(task, labels[target], source) for target, source in zip(targets, flat_sources, strict=True)
        ]
        draws = self.knowledge.assume_draws(task, updates[0].images, flat_sources)
        run_labels = torch.stack([labels[target] for target in targets])
        if not self.knowledge.labels:
            run_labels = draw_logits(task, run_labels, flat_sources)
        objective = Objective(
            self.distance,
            self.priors if known_smooth(task.known_defences) else self.priors.without_variation(),
            self.knowledge,
            [observe(task, updates, targets, draws)],
            targets,
            self.compare_statistics(task, updates[0]),
        )
        points = Points(task, shrink(torch.stack(starts), self.descent.scales[0]), run_labels)
        return Runs(objective, points, self.descent, self.restarts, self.second_stage)

    def compare_statistics(self, task: Task, update: Update) -> StatisticsGap | None:
        """Prepare the comparison with what batch normalisations saw, if it has any weight."""
        if not self.priors.batch_norm:
            return None
        return StatisticsGap(task, update.local, known_statistics(task.model, update))


def check_updates(updates: Sequence[Update]) -> None:
    """Refuse what cannot be matched together."""
    if not updates:
        raise KnowledgeError("there is no update to attack: give at least one")
    if len({update.images for update in updates}) > 1:
        raise KnowledgeError("updates of different numbers of images: attack each number on its own")
    if len({update.local for update in updates}) > 1:
        raise KnowledgeError("updates of different local training: attack each kind on its own")
