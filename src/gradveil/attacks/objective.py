"""What a search minimises: the distance of a candidate's update from the released one, and the priors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.distances import Distance, similarities
from gradveil.attacks.knowledge import Knowledge
from gradveil.attacks.likelihood import image_surprise, update_surprise
from gradveil.attacks.observation import Observation
from gradveil.attacks.points import Points
from gradveil.attacks.priors import Priors, disagreement, energy, pass_gap
from gradveil.attacks.stages import StageStart
from gradveil.attacks.statistics import StatisticsGap
from gradveil.defences import TINY


@dataclass(eq=False)
class Evaluation:
    """The candidates at the present points, for each observation, and the slope at them; `measure` gives distances."""

    candidates: list[Tensor]
    slopes: list[Tensor]
    measure: Callable[[], Tensor]

    @cached_property
    def distances(self) -> Tensor:
        """The distance of every run; most steps of a second stage never ask for it."""
        return self.measure()


@final
class Objective:
    """The objective of T runs; `targets` says which update each of them has to match."""

    def __init__(
        self,
        distance: Distance,
        priors: Priors,
        knowledge: Knowledge,
        observations: Sequence[Observation],
        targets: Tensor,
        statistics: StatisticsGap | None = None,
    ) -> None:
        self.distance, self.priors, self.knowledge = distance, priors, knowledge
        self.observations, self.targets, self.statistics = list(observations), targets, statistics
        self.stage: StageStart | None = None

    def evaluate(self, points: Points) -> Evaluation:
        """Measure each run's distance at the present images, averaged over the observations."""
        pixels, labels = points.pixels(), points.labels()
        candidates = [observation.candidate(pixels, labels) for observation in self.observations]
        pairs = [(one, candidate.detach()) for one, candidate in zip(self.observations, candidates, strict=True)]
        if self.stage is not None and self.stage.is_everywhere:
            slopes = [one.levelled_slope(candidate) for one, candidate in pairs]
            return Evaluation(candidates, share(slopes), lambda: mean_distance(self.measure_all(pairs)))
        measured = self.measure_all(pairs)
        slopes = [slope for _, slope in measured]
        if self.stage is not None:
            slopes = [self.stage.slope(*pair, slope) for pair, slope in zip(pairs, slopes, strict=True)]
        distances = mean_distance(measured)
        return Evaluation(candidates, share(slopes), lambda: distances)

    def measure_all(self, pairs: Sequence[tuple[Observation, Tensor]]) -> list[tuple[Tensor, Tensor]]:
        """Measure candidates by the first distance: how far they are, and the slope."""
        return [observation.measure(self.distance, candidate) for observation, candidate in pairs]

    def slope(self, points: Points, now: Evaluation, step: int, steps: int) -> Tensor:
        """Differentiate the whole objective: each run's update depends on its own images alone."""
        (slope,) = torch.autograd.grad(now.candidates, points.flat, now.slopes)
        images = points.images()
        (smooth,) = torch.autograd.grad(images, points.flat, self.priors.variation(images.detach()))
        prior = self.variation_weight(points, now, step, steps) * smooth
        if self.priors.beyond_variation:
            (others,) = torch.autograd.grad(self.penalty(points).sum(), points.flat)
            prior = prior + others
        if not self.priors.relative:
            return slope + prior
        if self.knowledge.policy:
            # What no draw has seen stays as it began: a prior alone would only blur it.
            prior = prior * (slope != 0)
        unit = slope.abs().mean(1, keepdim=True) / smooth.abs().mean(1, keepdim=True).clamp(min=TINY)
        return slope + unit * prior

    def variation_weight(self, points: Points, now: Evaluation, step: int, steps: int) -> Tensor | float:
        """Weigh the total variation against the distance; with known noise as the two surprises do."""
        if not self.knowledge.noise:
            return self.priors.variation_weight(step, steps)
        observation, distances = self.observations[0], now.distances.detach().requires_grad_()
        surprise = update_surprise(distances, observation.released, observation.release.deviation)
        (steepness,) = torch.autograd.grad(surprise.sum(), distances)
        # The surprises of several updates add up, and their distances are averaged.
        steepness = steepness.clamp(min=TINY) * len(self.observations)
        return (image_surprise(torch.ones_like(steepness), points.size.numel()) / steepness)[:, None]

    def penalty(self, points: Points) -> Tensor:
        """Add up the priors that have any weight, without the total variation."""
        priors, images = self.priors, points.images()
        penalty = images.new_zeros(len(images))
        if priors.energy:
            penalty = penalty + priors.energy * energy(images)
        if priors.consistency:
            penalty = penalty + priors.consistency * disagreement(images, self.targets)
        if priors.passes:
            penalty = penalty + priors.passes * pass_gap(images, points.chosen_labels(), priors.images_per_pass)
        if priors.batch_norm and self.statistics is not None:
            fed = self.observations[0].feed(points.to_pixels(images))
            penalty = penalty + priors.batch_norm * self.statistics(fed)
        return penalty

    def begin_stage(self, points: Points) -> None:
        """Go on along the distance between directions, levelled against a flat image of the mean colour."""
        reached = self.evaluate(points).distances
        flat, labels = points.mean_colour(), points.labels().detach()
        self.observations = [observation.level(flat, labels) for observation in self.observations]
        active = torch.ones_like(reached, dtype=torch.bool)
        self.stage = StageStart(points.flat.detach().clone(), reached, active)

    def roll_back(self, points: Points) -> None:
        """Return runs that were led astray to where the second stage began, and go on along the first distance."""
        assert self.stage is not None
        astray = self.stage.find_astray(self.evaluate(points).distances)
        points.put_back(astray, self.stage.points)
        self.stage = self.stage.deactivate(astray)

    def similarities(self, now: Evaluation) -> dict[str, Tensor]:
        """Compare the candidates with the first observation, parameter by parameter."""
        first = self.observations[0]
        return similarities(now.candidates[0].detach(), first.released, first.sizes)

    def keep(self, rows: Tensor) -> None:
        """Go on with the runs at `rows` only."""
        self.targets = self.targets[rows]
        self.stage = None if self.stage is None else self.stage.keep(rows)
        self.observations = [observation.keep(rows) for observation in self.observations]


def mean_distance(measured: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Average the distances of each run over the observations."""
    return torch.stack([distances for distances, _ in measured]).mean(0)


def share(slopes: list[Tensor]) -> list[Tensor]:
    """Take the slopes of the mean over the observations."""
    return slopes if len(slopes) == 1 else [slope / len(slopes) for slope in slopes]
