"""Gradient matching: find images whose gradient is the released one."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.distances import DISTANCES, Gradients
from gradveil.attacks.labels import find_labels
from gradveil.attacks.priors import total_variation
from gradveil.client import gradients_apart
from gradveil.errors import KnowledgeError, SettingsError, UnknownNameError
from gradveil.models.frozen import freeze_batch_norm
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update

Optimiser = Literal["adam", "sgd"]
Schedule = Literal["constant", "drops", "cosine"]
DROPS = (3 / 8, 5 / 8, 7 / 8)
HISTORY = 50


@dataclass(frozen=True)
class GradientMatching(Attack):
    """Optimise images until their gradient matches.

    The images live in normalised space. `signed` steps along the sign of the slope; `box` keeps pixels valid; `drops`
    divides the learning rate by ten at 3/8, 5/8 and 7/8 of the steps. Of several restarts the one with the lowest
    distance wins. `together` is how many targets and restarts run as one tensor batch.
    """

    distance: str = "cosine"
    optimiser: Optimiser = "adam"
    learning_rate: float = 0.1
    schedule: Schedule = "drops"
    steps: int = 4800
    restarts: int = 1
    signed: bool = True
    box: bool = True
    total_variation: float = 1e-4
    together: int = 8

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise UnknownNameError("distance", self.distance, DISTANCES)
        if min(self.steps, self.restarts, self.together) < 1:
            raise SettingsError(
                f"steps {self.steps}, restarts {self.restarts}, together {self.together}: each must be at least 1"
            )
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0 and self.total_variation >= 0):
            raise SettingsError(
                f"learning rate {self.learning_rate}, total variation {self.total_variation}: "
                "the first must be above 0, the second 0 or more"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        return ("the model and the loss", "the number of images", "the labels, given or read from the gradient")

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        check_updates(updates)
        labels = [find_labels(task, update) for update in updates]
        model = freeze_batch_norm(task.model)
        runs = [
            (index, source) for index, generator in enumerate(generators) for source in split(generator, self.restarts)
        ]
        finished: list[list[Reconstruction]] = [[] for _ in updates]
        groups = [runs[start : start + self.together] for start in range(0, len(runs), self.together)]
        for position, group in enumerate(groups):
            chosen = [index for index, _ in group]
            search = Search(
                self,
                task,
                model,
                {name: torch.stack([updates[i].tensors[name] for i in chosen]) for name in updates[0].tensors},
                torch.stack([labels[i] for i in chosen]),
                torch.stack([self.start(task, updates[i].images, source) for i, source in group]),
            )
            for step in search.run():
                if progress is not None:
                    progress(position * self.steps + step, len(groups) * self.steps)
            for index, result in zip(chosen, search.results(), strict=True):
                finished[index].append(result)
        return [best_restart(results) for results in finished]

    def start(self, task: Task, images: int, generator: torch.Generator) -> Tensor:
        """Draw standard normal images in normalised space."""
        return torch.randn(images, *task.shape, generator=generator, device=generator.device)

    def rate(self, step: int) -> float:
        """Give the learning rate of step `step`, counted from 0."""
        if self.schedule == "drops":
            return self.learning_rate * 0.1 ** sum(step >= drop * self.steps for drop in DROPS)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.learning_rate

    def make_optimiser(self, points: Tensor) -> torch.optim.Optimizer:
        """Both optimisers treat every pixel on its own, so targets in one batch cannot influence each other."""
        if self.optimiser == "adam":
            return torch.optim.Adam([points], lr=self.learning_rate)
        return torch.optim.SGD([points], lr=self.learning_rate, momentum=0.9, nesterov=True)


def check_updates(updates: Sequence[Update]) -> None:
    """Refuse what cannot be matched together."""
    if not updates:
        raise KnowledgeError("there is no update to attack: give at least one")
    if any(update.local_steps is not None for update in updates):
        raise KnowledgeError("the update is a weight change of several local steps: this attack needs a gradient")
    if len({update.images for update in updates}) > 1:
        raise KnowledgeError("updates of different numbers of images: attack each number on its own")


class Search:
    """One tensor batch of independent optimisations under way."""

    def __init__(
        self, attack: GradientMatching, task: Task, model: nn.Module, released: Gradients, labels: Tensor, start: Tensor
    ) -> None:
        self.attack, self.task, self.model = attack, task, model
        self.released, self.labels = released, labels
        self.mean = start.new_tensor(task.mean).view(-1, 1, 1)
        self.std = start.new_tensor(task.std).view(-1, 1, 1)
        self.points = start.requires_grad_()
        self.history: list[tuple[int, Tensor]] = []

    def run(self) -> Iterator[int]:
        """Take every step; yield the number of steps done."""
        optimiser = self.attack.make_optimiser(self.points)
        for step in range(self.attack.steps):
            distance = self.distance()
            if step % max(1, self.attack.steps // HISTORY) == 0:
                self.history.append((step, distance.detach()))
            self.points.grad = self.slope(distance)
            for group in optimiser.param_groups:
                group["lr"] = self.attack.rate(step)
            optimiser.step()
            self.keep_in_box()
            yield step + 1
        self.history.append((self.attack.steps, self.distance().detach()))

    def distance(self) -> Tensor:
        """Measure each target's distance at the present images."""
        candidate = gradients_apart(self.model, self.task.loss, self.pixels(), self.labels)
        return DISTANCES[self.attack.distance](candidate, self.released)

    def slope(self, distance: Tensor) -> Tensor:
        """Differentiate the whole objective; the sum keeps every target's slope its own."""
        objective = distance + self.attack.total_variation * total_variation(self.points)
        (slope,) = torch.autograd.grad(objective.sum(), self.points)
        return slope.sign() if self.attack.signed else slope

    def keep_in_box(self) -> None:
        if self.attack.box:
            with torch.no_grad():
                self.points.copy_(self.points.clamp(-self.mean / self.std, (1 - self.mean) / self.std))

    def pixels(self) -> Tensor:
        return self.points * self.std + self.mean

    def results(self) -> list[Reconstruction]:
        """Turn what was found into one result per target; a loss that is not finite is a failure."""
        images = self.pixels().detach().clamp(0, 1)
        histories = torch.stack([losses for _, losses in self.history]).T.tolist()
        steps = [step for step, _ in self.history]
        return [
            make_result(image, labels, list(zip(steps, losses, strict=True)))
            for image, labels, losses in zip(images, self.labels, histories, strict=True)
        ]


def make_result(images: Tensor, labels: Tensor, history: list[tuple[int, float]]) -> Reconstruction:
    loss = history[-1][1]
    sound = math.isfinite(loss) and bool(images.isfinite().all())
    return Reconstruction(images, labels, loss, "ok" if sound else "failed", tuple(history))


def best_restart(results: Sequence[Reconstruction]) -> Reconstruction:
    """Keep the restart with the lowest matching loss; one that failed can win only if all did."""
    return min(results, key=lambda result: result.matching_loss if result.status == "ok" else math.inf)
