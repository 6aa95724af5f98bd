"""Gradient matching: find images whose gradient is the released one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.distances import DISTANCES, lay_flat, sizes_of
from gradveil.attacks.labels import find_labels
from gradveil.attacks.observation import Observation, View
from gradveil.attacks.optimisers import OPTIMISERS
from gradveil.attacks.priors import Statistics, known_statistics, shows_statistics
from gradveil.attacks.search import Search
from gradveil.attacks.starts import KNOWING, STARTS, knowledge
from gradveil.client import Simulation
from gradveil.defences import Released, known_deviation, known_policies, known_release
from gradveil.errors import KnowledgeError, SettingsError, UnknownNameError
from gradveil.rng import split
from gradveil.transforms import PolicyDraws
from gradveil.types import Reconstruction, Task, Update

OptimiserName = Literal["adam", "sgd", "lbfgs"]
Schedule = Literal["constant", "drops", "cosine"]
DROPS = (3 / 8, 5 / 8, 7 / 8)
LBFGS_ITERATIONS = 20


@dataclass(frozen=True)
class GradientMatching(Attack):
    """Optimise images until their gradient matches.

    The images live in normalised space. `signed` steps along the sign of the slope; `box` keeps pixels valid; `drops`
    divides the learning rate by ten at 3/8, 5/8 and 7/8 of the steps; one step of L-BFGS is 20 iterations, as in
    torch. Of several restarts the one with the lowest distance wins. `together` is how many targets and restarts run as
    one tensor batch, at least the restarts of one target.

    The weight of the total variation goes from `total_variation` to `last_variation` (the same, unless given) in equal
    ratios. With `relative` the priors are weighed in units that make the slope of the total variation as steep, on
    average, as that of the distance, run by run and step by step: one weight then means the same for every model and
    phase. With `finish` the slope is that of another distance from the share `finish_from` of the steps on, with the
    gradients of each parameter in units of how far those of a flat image of the mean colour are from the released ones;
    what is noted and what chooses is still `distance`. A run that is no nearer by then, a third into it, goes back and
    ends along `distance`.

    `energy`, `consistency` (over restarts) and `batch_norm` are weights of further priors. `scales` gives the
    resolutions that take turns, coarse first: (2, 1) spends half of the steps at half the resolution. At each share of
    the steps in `prune` the worse half of a target's runs is dropped; a run stops once its distance falls to
    `tolerance` of what it started with. With `optimise_labels` labels are searched for together with the images. With
    `knows_policy` the original image is searched for, through each draw of the policies that the task names. With
    `knows_noise` the total variation has the weight that makes the image the most likely one, given how strong the task
    says that the noise is.
    """

    distance: str = "cosine"
    optimiser: OptimiserName = "adam"
    learning_rate: float = 0.1
    schedule: Schedule = "drops"
    steps: int = 4800
    restarts: int = 1
    signed: bool = True
    box: bool = True
    total_variation: float = 1e-4
    together: int = 16
    last_variation: float | None = None
    energy: float = 0.0
    consistency: float = 0.0
    batch_norm: float = 0.0
    start: str = "normal"
    scales: tuple[int, ...] = (1,)
    prune: tuple[float, ...] = ()
    tolerance: float = 0.0
    optimise_labels: bool = False
    knows_policy: bool = False
    knows_noise: bool = False
    relative: bool = False
    finish: str | None = None
    finish_from: float = 0.25

    def __post_init__(self) -> None:
        for kind, name, allowed in (
            ("distance", self.distance, DISTANCES),
            ("distance", self.finish or self.distance, DISTANCES),
            ("optimiser", self.optimiser, OPTIMISERS),
            ("start", self.start, STARTS),
        ):
            if name not in allowed:
                raise UnknownNameError(kind, name, allowed)
        if min(self.steps, self.restarts, self.together) < 1:
            raise SettingsError(
                f"steps {self.steps}, restarts {self.restarts}, together {self.together}: each must be at least 1"
            )
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise SettingsError(f"learning rate {self.learning_rate}: it must be above 0")
        weights = (self.total_variation, self.last_variation or 0, self.energy, self.consistency, self.batch_norm)
        if not all(0 <= weight < math.inf for weight in (*weights, self.tolerance)):
            raise SettingsError(f"priors weighted {weights}, tolerance {self.tolerance}: each must be 0 or more")
        if self.last_variation is not None and not (self.total_variation > 0 and self.last_variation > 0):
            raise SettingsError("a total variation that changes must be above 0 at both ends")
        if not self.scales or self.scales[-1] != 1 or min(self.scales) < 1:
            raise SettingsError(f"scales {self.scales}: give whole numbers from 1, the last of them 1")
        if self.finish is not None and self.optimiser == "lbfgs":
            raise SettingsError("the memory of L-BFGS is of one distance: no other can finish, choose adam or sgd")
        if self.finish is not None and not (len(self.scales) - 1) / len(self.scales) <= self.finish_from <= 1:
            raise SettingsError(
                f"finish from {self.finish_from}: give a share of the steps up to 1, at full resolution"
            )
        if self.knows_noise and (self.distance != "cosine" or self.finish is not None or self.relative):
            raise SettingsError("known noise is weighed against the cosine: choose that, no finish, no relative prior")
        if not all(0 < share < 1 for share in self.prune):
            raise SettingsError(f"pruning at {self.prune}: give shares of the steps between 0 and 1")

    @property
    def needs(self) -> tuple[str, ...]:
        known = ["the model and the loss", "the number of images"]
        if not self.optimise_labels:
            known.append("the labels, given or read from the gradient")
        if self.batch_norm:
            known.append("the statistics of batch normalisation, from a trained model or sent along")
        if self.start in KNOWING:
            known.append("public images of the same kind")
        if self.knows_policy:
            known.append("the set of policies in use, not the draw")
        if self.knows_noise:
            known.append("the strength of the noise, not the draw")
        return (*known, "the local steps, if the update is of several")

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        check_updates(updates)
        if self.start in KNOWING:
            knowledge(task)
        if self.batch_norm:
            for update in updates:
                known_statistics(task.model, update.buffers)
        if self.knows_policy and known_policies(task.known_defences) is None:
            raise KnowledgeError("this attack looks through a policy and the task names none as known")
        if self.knows_noise and any(
            known_deviation(task.known_defences, update.images, task.participants) == 0 for update in updates
        ):
            raise KnowledgeError("this attack allows for noise and the task names none of known strength")

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        count = self.runs_per_target(task)
        own_statistics = self.batch_norm > 0 and any(shows_statistics(task.model, one.buffers) for one in updates)
        size = 1 if own_statistics else max(1, self.together // count)
        groups = [range(start, min(start + size, len(updates))) for start in range(0, len(updates), size)]
        finished: list[Reconstruction] = []
        for position, group in enumerate(groups):
            sources = [split(generators[index], count) for index in group]
            search = self.prepare(task, [updates[index] for index in group], sources)
            for step in search.run():
                if progress is not None:
                    progress(position * self.steps + step, len(groups) * self.steps)
            if progress is not None:
                progress((position + 1) * self.steps, len(groups) * self.steps)
            runs = search.results()
            finished += [best_restart(runs[first : first + count]) for first in range(0, len(runs), count)]
        return finished

    def runs_per_target(self, task: Task) -> int:
        """Count the runs of one target: restarts, each with every draw of the policies if these are looked through."""
        policies = known_policies(task.known_defences) if self.knows_policy else None
        return self.restarts * (1 if policies is None else len(policies.draws()))

    def prepare(self, task: Task, updates: Sequence[Update], sources: Sequence[Sequence[torch.Generator]]) -> Search:
        """Lay the runs of several targets side by side; `sources` has one generator for each run of each target."""
        runs = [(index, source) for index, mine in enumerate(sources) for source in mine]
        targets = torch.tensor([index for index, _ in runs])
        labels = [self.first_labels(task, update) for update in updates]
        starts = [STARTS[self.start](task, labels[index], source) for index, source in runs]
        view = self.view(task, updates[0].images, runs)
        given = torch.stack([labels[index] for index, _ in runs])
        return Search(
            self,
            task,
            [observe(task, updates, targets, view)],
            self.label_logits(task, runs, given) if self.optimise_labels else given,
            torch.stack(starts),
            targets,
            self.statistics(task, updates),
        )

    def first_labels(self, task: Task, update: Update) -> Tensor:
        """Find the labels, or, if they are searched for, stand-ins of the right number."""
        if not self.optimise_labels:
            return find_labels(task, update)
        return torch.zeros(update.images, dtype=torch.int64, device=update.device)

    def label_logits(self, task: Task, runs: Sequence[tuple[int, torch.Generator]], like: Tensor) -> Tensor:
        """Draw logits to search for labels from, as Zhu et al. (2019) do."""
        return torch.stack(
            [torch.randn(like.shape[1], task.classes, generator=source, device=source.device) for _, source in runs]
        )

    def view(self, task: Task, images: int, runs: Sequence[tuple[int, torch.Generator]]) -> View | None:
        """Give every run its draw: for one image each possible one in turn, for a batch random ones."""
        policies = known_policies(task.known_defences) if self.knows_policy else None
        if policies is None:
            return None
        every = policies.draws()
        if images == 1:
            return View(policies, every.take(torch.arange(len(runs)) % len(every)), 1)
        return View(policies, PolicyDraws.join([policies.sample(images, source) for _, source in runs]), images)

    def statistics(self, task: Task, updates: Sequence[Update]) -> dict[str, Statistics] | None:
        """Find what batch normalisation saw; updates that carry their own run one by one."""
        return known_statistics(task.model, updates[0].buffers) if self.batch_norm else None

    def rate(self, step: int) -> float:
        """Give the learning rate of step `step`, counted from 0."""
        if self.schedule == "drops":
            return self.learning_rate * 0.1 ** sum(step >= drop * self.steps for drop in DROPS)
        if self.schedule == "cosine":
            return self.learning_rate * (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.learning_rate

    def variation_weight(self, step: int) -> float:
        """Give the weight of the total variation at step `step`."""
        if self.last_variation is None:
            return self.total_variation
        return self.total_variation * math.exp(math.log(self.last_variation / self.total_variation) * step / self.steps)

    @property
    def finish_step(self) -> int:
        """The step at which the finishing distance takes over."""
        return math.ceil(self.finish_from * self.steps)

    @property
    def check_step(self) -> int:
        """The step at which it has to show that it leads somewhere."""
        return self.finish_step + (self.steps - self.finish_step) // 3

    @property
    def iterations(self) -> int:
        """Evaluations of the slope in one step."""
        return LBFGS_ITERATIONS if self.optimiser == "lbfgs" else 1

    def scale_changes(self) -> dict[int, int]:
        """Map the steps at which the resolution changes to the new scale."""
        return {place * self.steps // len(self.scales): scale for place, scale in enumerate(self.scales) if place > 0}


def observe(task: Task, updates: Sequence[Update], targets: Tensor, view: View | None) -> Observation:
    """Set updates before runs: `targets` says which update each run is to match."""
    released = {name: torch.stack([updates[i].tensors[name] for i in targets]) for name in updates[0].tensors}
    sizes = sizes_of(released)
    flat = lay_flat(released, sizes)
    known = known_release(task.known_defences, Released(flat, sizes, task.model, updates[0].images), task.participants)
    simulation = Simulation(task.model, task.loss, updates[0].local, task.shape)
    return Observation(simulation, flat, sizes, view, release=known)


def check_updates(updates: Sequence[Update]) -> None:
    """Refuse what cannot be matched together."""
    if not updates:
        raise KnowledgeError("there is no update to attack: give at least one")
    if len({update.images for update in updates}) > 1:
        raise KnowledgeError("updates of different numbers of images: attack each number on its own")
    if len({update.local for update in updates}) > 1:
        raise KnowledgeError("updates of different local steps: attack each kind on its own")


def best_restart(results: Sequence[Reconstruction]) -> Reconstruction:
    """Keep the restart with the lowest matching loss; one that failed can win only if all did."""
    return min(results, key=lambda result: result.matching_loss if result.status == "ok" else math.inf)
