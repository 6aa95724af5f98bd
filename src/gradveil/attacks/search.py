"""The loop of gradient matching: many runs side by side, each on its own."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from gradveil.attacks.distances import DISTANCES, Distance, similarities
from gradveil.attacks.finish import Finish
from gradveil.attacks.likelihood import image_surprise, update_surprise
from gradveil.attacks.observation import Observation
from gradveil.attacks.optimisers import OPTIMISERS
from gradveil.attacks.priors import Statistics, disagreement, energy, statistics_gap, variation_slope
from gradveil.defences import TINY
from gradveil.gradients import freeze_batch_norm
from gradveil.types import Reconstruction, Task

if TYPE_CHECKING:
    from gradveil.attacks.matching import GradientMatching

HISTORY = 30
PICTURES = 10


@dataclass(frozen=True, eq=False)
class Moment:
    """What the runs at `rows` had reached after a number of steps."""

    step: int
    rows: list[int]
    distances: list[float]
    similarities: dict[str, list[float]]
    pixels: Tensor


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The distance of every run at one point; for each observation the gradients, and the slope to go along."""

    distances: Tensor
    candidates: list[Tensor]
    slopes: list[Tensor]


class Search:
    """One tensor batch of T runs under way.

    `points` are the images in normalised space, T×B×C×H×W, at the resolution of the present scale, followed, if labels
    are searched for, by their logits: one flat row for each run. `targets` says which update each run is of.
    """

    def __init__(
        self,
        attack: "GradientMatching",
        task: Task,
        observations: Sequence[Observation],
        labels: Tensor,
        start: Tensor,
        targets: Tensor,
        statistics: Mapping[str, Statistics] | None = None,
    ) -> None:
        self.attack, self.task, self.observations = attack, task, list(observations)
        self.labels, self.targets, self.statistics = labels, targets, statistics
        self.mean = start.new_tensor(task.mean).view(-1, 1, 1)
        self.std = start.new_tensor(task.std).view(-1, 1, 1)
        # Folded models show nothing of what enters their batch normalisations.
        self.watched = task.model if statistics is None else freeze_batch_norm(task.model)
        self.has_priors = max(attack.energy, attack.consistency, attack.batch_norm) > 0
        self.rows = torch.arange(len(start))
        self.count = len(start)
        self.first: Tensor | None = None
        self.finish: Finish | None = None
        self.moments: list[Moment] = []
        self.ended: dict[int, Reconstruction] = {}
        self.set_points(shrink(start, attack.scales[0]), labels if attack.optimise_labels else None)

    def set_points(self, images: Tensor, logits: Tensor | None) -> None:
        """Begin anew from these images; the optimiser's memory is of another space and goes."""
        parts = [images.flatten(1)] if logits is None else [images.flatten(1), logits.flatten(1)]
        self.size = images.shape[1:]
        limits = (-self.mean / self.std, (1 - self.mean) / self.std)
        self.low, self.high = (limit.expand(self.size).flatten() for limit in limits)
        self.flat = torch.cat(parts, 1).detach().requires_grad_()
        self.optimiser = OPTIMISERS[self.attack.optimiser](self.flat.detach())

    def images(self) -> Tensor:
        """Give the images in normalised space at full resolution."""
        points = self.flat[:, : self.size.numel()].view(-1, *self.size)
        return points if points.shape[2:] == self.task.shape else enlarge(points, self.task.shape[1:])

    def logits(self) -> Tensor | None:
        rest = self.flat[:, self.size.numel() :]
        return rest.view(-1, self.size[0], self.task.classes) if self.attack.optimise_labels else None

    def present_labels(self) -> Tensor:
        logits = self.logits()
        return self.labels if logits is None else logits.softmax(-1)

    def pixels(self) -> Tensor:
        return self.images() * self.std + self.mean

    def run(self) -> Iterator[int]:
        """Take every step; yield the number of steps done."""
        every = max(1, self.attack.steps // HISTORY)
        prunings = {math.ceil(share * self.attack.steps) for share in self.attack.prune}
        scale_changes = self.attack.scale_changes()
        for step in range(self.attack.steps):
            if step == self.attack.finish_step and self.attack.finish is not None:
                self.begin_finish(DISTANCES[self.attack.finish])
            if step == self.attack.check_step and self.finish is not None:
                self.check_finish(self.finish)
            if step in scale_changes:
                self.set_points(shrink(self.images(), scale_changes[step]), self.logits())
            noted = step % every == 0 or step in prunings
            for iteration in range(self.attack.iterations):
                now = self.evaluate()
                if noted and iteration == 0:
                    self.note(step, now)
                    if step in prunings:
                        self.prune()
                        now = self.evaluate()
                self.move(now, step)
            self.keep_in_box()
            if self.attack.tolerance and step % every == 0:
                self.stop_matched(step)
            if len(self.rows) == 0:
                break
            yield step + 1
        if len(self.rows):
            self.note(self.attack.steps, self.evaluate())
            self.end(torch.ones(len(self.rows), dtype=torch.bool))

    def evaluate(self) -> "Evaluation":
        """Measure each run's distance at the present images, averaged over what was observed."""
        pixels, labels, measure = self.pixels(), self.present_labels(), DISTANCES[self.attack.distance]
        candidates = [seen.candidate(pixels, labels) for seen in self.observations]
        pairs = [(seen, ours.detach()) for seen, ours in zip(self.observations, candidates, strict=True)]
        found = [seen.measure(measure, ours) for seen, ours in pairs]
        slopes = [slope for _, slope in found]
        if self.finish is not None:
            slopes = [self.finish.slope(*pair, slope) for pair, slope in zip(pairs, slopes, strict=True)]
        if len(slopes) > 1:
            slopes = [slope / len(slopes) for slope in slopes]
        return Evaluation(torch.stack([distance for distance, _ in found]).mean(0), candidates, slopes)

    def begin_finish(self, measure: Distance) -> None:
        """Go on along another distance, with the parameters levelled against a flat image of the mean colour."""
        reached = self.evaluate().distances
        flat = self.mean.expand(len(self.rows), self.size[0], *self.task.shape)
        labels = self.present_labels().detach()
        self.observations = [seen.level(flat, labels) for seen in self.observations]
        self.finish = Finish(measure, self.flat.detach().clone(), reached, torch.ones_like(reached, dtype=torch.bool))

    def check_finish(self, finish: Finish) -> None:
        """Send runs that were led astray back to where they left the first distance, and on along that."""
        astray = finish.astray(self.evaluate().distances)
        with torch.no_grad():
            self.flat[astray] = finish.points[astray]
        self.finish = replace(finish, active=finish.active & ~astray)

    def move(self, now: "Evaluation", step: int) -> None:
        """Take the slope and go along it."""
        slope = self.slope(now, step)
        move = self.optimiser.move(slope.sign() if self.attack.signed else slope, self.attack.rate(step))
        with torch.no_grad():
            self.flat.add_(move)

    def slope(self, now: "Evaluation", step: int) -> Tensor:
        """Differentiate the whole objective: each run's gradients depend on its own images alone."""
        (slope,) = torch.autograd.grad(now.candidates, self.flat, now.slopes)
        images = self.images()
        (smooth,) = torch.autograd.grad(images, self.flat, variation_slope(images.detach()))
        prior = self.variation_weight(now, step) * smooth
        if self.has_priors:
            (others,) = torch.autograd.grad(self.penalty().sum(), self.flat)
            prior = prior + others
        if not self.attack.relative:
            return slope + prior
        if self.attack.knows_policy:
            # What no draw has seen stays as it began: a prior alone would only blur it.
            prior = prior * (slope != 0)
        unit = slope.abs().mean(1, keepdim=True) / smooth.abs().mean(1, keepdim=True).clamp(min=1e-30)
        return slope + unit * prior

    def variation_weight(self, now: "Evaluation", step: int) -> Tensor | float:
        """Weigh the total variation against the distance; with known noise as the two surprises do."""
        if not self.attack.knows_noise:
            return self.attack.variation_weight(step)
        seen, distances = self.observations[0], now.distances.detach().requires_grad_()
        (steepness,) = torch.autograd.grad(
            update_surprise(distances, seen.released, seen.release.deviation).sum(), distances
        )
        return (image_surprise(torch.ones_like(steepness), self.size.numel()) / steepness.clamp(min=TINY))[:, None]

    def penalty(self) -> Tensor:
        """Add up the priors that have any weight, but for the total variation."""
        attack, images = self.attack, self.images()
        penalty = images.new_zeros(len(images))
        if attack.energy:
            penalty = penalty + attack.energy * energy(images)
        if attack.consistency:
            penalty = penalty + attack.consistency * disagreement(images, self.targets)
        if attack.batch_norm and self.statistics is not None:
            fed = self.observations[0].feed(images * self.std + self.mean)
            penalty = penalty + attack.batch_norm * statistics_gap(self.watched, fed, self.statistics)
        return penalty

    def keep_in_box(self) -> None:
        """Clamp to valid pixels."""
        if self.attack.box:
            with torch.no_grad():
                self.flat[:, : self.size.numel()].clamp_(self.low, self.high)

    def note(self, step: int, now: "Evaluation") -> None:
        """Write down where every run is."""
        first, distances = self.observations[0], now.distances
        self.first = distances if self.first is None else self.first
        alike = similarities(now.candidates[0].detach(), first.released, first.sizes)
        self.moments.append(
            Moment(
                step,
                self.rows.tolist(),
                distances.tolist(),
                {name: values.tolist() for name, values in alike.items()},
                self.pixels().detach().clamp(0, 1),
            )
        )

    def prune(self) -> None:
        """Drop the worse half of the runs of every target, by the distances just noted; the loss alone chooses."""
        distances = torch.tensor(self.moments[-1].distances).nan_to_num(math.inf)
        stays = torch.zeros(len(self.rows), dtype=torch.bool)
        for target in set(self.targets.tolist()):
            runs = (self.targets == target).nonzero().flatten()
            best = distances[runs].argsort(stable=True)[: (len(runs) + 1) // 2]
            stays[runs[best]] = True
        self.end(~stays)

    def stop_matched(self, step: int) -> None:
        """End the runs that have matched as far as asked, or that are lost."""
        assert self.first is not None
        now = self.evaluate()
        distances = now.distances
        done = (distances <= self.attack.tolerance * self.first) | ~distances.isfinite()
        if done.any():
            self.note(step + 1, now)
            self.end(done)

    def end(self, done: Tensor) -> None:
        """Turn the runs where `done` is true into results and go on with the others."""
        fed = self.observations[0].feed(self.pixels().detach().clamp(0, 1)).detach()
        images, labels = self.pixels().detach().clamp(0, 1), self.present_labels().detach()
        for place in done.nonzero().flatten().tolist():
            found = labels[place].argmax(-1) if self.attack.optimise_labels else labels[place]
            guess = None if self.observations[0].view is None else fed[place]
            self.ended[int(self.rows[place])] = self.result(int(self.rows[place]), images[place], found, guess)
        self.keep((~done).nonzero().flatten())

    def keep(self, rows: Tensor) -> None:
        self.rows, self.targets, self.labels = self.rows[rows], self.targets[rows], self.labels[rows]
        self.first = None if self.first is None else self.first[rows]
        self.finish = None if self.finish is None else self.finish.keep(rows)
        self.observations = [seen.keep(rows) for seen in self.observations]
        self.flat = self.flat.detach()[rows].requires_grad_()
        self.optimiser.keep(rows)

    def result(self, row: int, images: Tensor, labels: Tensor, fed: Tensor | None) -> Reconstruction:
        """Collect one run; a loss that is not finite is a failure."""
        noted = [(moment, moment.rows.index(row)) for moment in self.moments if row in moment.rows]
        history = tuple((moment.step, moment.distances[place]) for moment, place in noted)
        shown = noted[:: max(1, len(noted) // PICTURES)]
        sound = math.isfinite(history[-1][1]) and bool(images.isfinite().all())
        return Reconstruction(
            images.clone(),
            labels.clone(),
            history[-1][1],
            "ok" if sound else "failed",
            history,
            tuple(
                (moment.step, {name: values[place] for name, values in moment.similarities.items()})
                for moment, place in noted
            ),
            tuple((moment.step, moment.pixels[place]) for moment, place in shown),
            fed if fed is None else fed.clone(),
            reason="" if sound else "the matching loss or the images are not finite",
            approximations=self.observations[0].simulation.approximations,
        )

    def results(self) -> list[Reconstruction]:
        """Give one result for each run, in their order."""
        return [self.ended[row] for row in range(self.count)]


def shrink(images: Tensor, scale: int) -> Tensor:
    """Take T×B×C×H×W to a resolution `scale` times lower; noise keeps its variance."""
    if scale == 1:
        return images
    height, width = (-(-side // scale) for side in images.shape[-2:])
    small = F.adaptive_avg_pool2d(images.flatten(0, 1), (height, width))
    return small.view(*images.shape[:3], height, width)


def enlarge(images: Tensor, size: Sequence[int]) -> Tensor:
    """Bring T×B×C×h×w to full resolution, smoothly."""
    large = F.interpolate(images.flatten(0, 1), size=tuple(size), mode="bilinear", align_corners=False)
    return large.view(*images.shape[:3], *size)
