"""FedAvg: rebuild the images behind a weight change although the order of their use is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from gradveil.attacks.base import Attack, Progress
from gradveil.attacks.labels import find_labels
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.orders import Order, OrderSearch, keep_different, order_is_known, order_matters, unroll
from gradveil.attacks.priors import Priors
from gradveil.attacks.restarts import best_restart
from gradveil.attacks.starts import Given
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.rng import split
from gradveil.types import Reconstruction, Task, Update

WRONG_LABEL = 1e6
"""The cost of pairing two versions of an image that have different labels."""


@final
@dataclass(frozen=True)
class FederatedAveraging(Attack):
    """Search for the order in which images were used, and for the images in it (after Dimitrov et al., 2022).

    Every use of an image has a version of its own; `passes` is the weight that ties the versions of different passes
    together, whatever their order. In the end the versions of one image are averaged. First `tried` orders of the
    labels are compared with stand-ins for the images. Images are searched for in the best `kept` of them, with
    `probe_steps` steps each; then uses are swapped for as long as that helps, and the best `finalists` are finished.
    `momenta` are tried in turn if the client's momentum is not known; none means that the update names the right one.

    Differs from Dimitrov et al.: they draw one order of the labels, and tie the means of all images of a pass. Here the
    order is searched for, and what is tied are means over the images of one label.
    """

    search: GradientMatching = field(default_factory=GradientMatching)
    passes: float = 0.3
    tried: int = 256
    kept: int = 8
    probe_steps: int = 60
    finalists: int = 2
    momenta: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.finalists <= self.kept <= self.tried:
            raise SettingsError(
                f"{self.tried} orders tried, {self.kept} kept, {self.finalists} finished: none may exceed the last"
            )
        if self.probe_steps < 1 or not self.passes >= 0:
            raise SettingsError(f"{self.probe_steps} steps of a probe, weight {self.passes}: give 1 or more, 0 or more")
        if not self.search.knowledge.labels or self.search.knowledge.policy:
            raise SettingsError("the order is one of labels: choose a search that knows labels and no policy")

    @property
    def needs(self) -> tuple[str, ...]:
        return (*self.search.needs, "not the order in which the images were used")

    @property
    def gradients_per_step(self) -> int:
        return self.search.gradients_per_step

    def with_steps(self, steps: int) -> "FederatedAveraging":
        return replace(self, search=self.search.with_steps(steps), probe_steps=max(1, min(self.probe_steps, steps)))

    def with_budget(self, gradients: int) -> "FederatedAveraging":
        """Share a number of gradients out: about a third to the probes, the rest to the finalists."""
        probes = max(1, gradients // (3 * self.kept * self.gradients_per_step))
        return replace(self, search=self.search.with_budget(2 * gradients // (3 * self.finalists)), probe_steps=probes)

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        self.search.check(task, updates)
        if task.participants > 1 and order_matters(updates[0]):
            raise KnowledgeError("an order is searched for in the update of one client, and this is a mean of several")
        for update in updates:
            if order_matters(update) and not order_is_known(update):
                unroll(update)

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        plain = [not order_matters(update) or order_is_known(update) for update in updates]
        if all(plain):
            return self.search.attack_many(task, updates, generators, progress)
        results = []
        for place, (update, source) in enumerate(zip(updates, generators, strict=True)):
            attack = self.search if plain[place] else self.attack_one
            results.append(attack(task, update, source))
            if progress is not None:
                progress(place + 1, len(updates))
        return results

    def attack_one(self, task: Task, update: Update, generator: torch.Generator) -> Reconstruction:
        """Find an order and the images in it."""
        drawing, probing, finishing = split(generator, 3)
        unrolled, orders, begun = self.begin(task, update, drawing)
        search = replace(self.search, priors=self.tie(update.images, unrolled.images))
        probed = probe(search.with_steps(self.probe_steps), task, unrolled, begun, probing)
        improved = keep_different([orders.improve(order, drawing) for order in probed])[: self.finalists]
        finished = [
            replace(search, start=Given(order.images))(task, replace(unrolled, labels=order.labels), source)
            for order, source in zip(improved, split(finishing, len(improved)), strict=True)
        ]
        return merge_passes(best_restart(finished), update.images)

    def begin(self, task: Task, update: Update, generator: torch.Generator) -> tuple[Update, OrderSearch, list[Order]]:
        """Find the orders to search in, with the momentum whose best order fits the update best, length included."""
        begun = []
        for momentum in self.momenta or (update.local.momentum,):
            nesterov = update.local.nesterov and momentum > 0
            assumed = replace(update, local=replace(update.local, momentum=momentum, nesterov=nesterov))
            unrolled, labels = unroll(assumed), find_labels(task, assumed)
            orders = OrderSearch(task, unrolled, update.images)
            begun.append((unrolled, orders, orders.begin(labels, self.tried, self.kept, generator)))
        return min(begun, key=lambda one: one[1].misfit(one[2][0]))

    def tie(self, images: int, uses: int) -> Priors:
        """Tie the passes together; a single pass has nothing to be tied to."""
        if uses <= images or not self.passes:
            return self.search.priors
        return replace(self.search.priors, passes=self.passes, images_per_pass=images)


def probe(
    search: GradientMatching, task: Task, update: Update, orders: Sequence[Order], generator: torch.Generator
) -> list[Order]:
    """Search for images in each of several orders, side by side."""
    updates = [replace(update, labels=order.labels) for order in orders]
    results = search.attack_many(task, updates, split(generator, len(orders)))
    return [Order(one.images, one.labels, one.matching_loss) for one in results if one.status == "ok"] or list(orders)


def merge_passes(result: Reconstruction, images: int) -> Reconstruction:
    """Average the versions of each image, paired by the Hungarian method; the first pass says how many there are."""
    if result.status != "ok":
        first = slice(0, images)
        return replace(result, images=result.images[first], labels=result.labels[first], pictures=())
    pixels, labels = torch.split(result.images, images), torch.split(result.labels, images)
    sums, counts = pixels[0].clone(), torch.ones(images, 1, 1, 1, device=pixels[0].device)
    for versions, given in zip(pixels[1:], labels[1:], strict=True):
        own, theirs = pair_versions(pixels[0], labels[0], versions, given)
        sums[own] += versions[theirs]
        counts[own] += 1
    pictures = tuple((step, picture[:images]) for step, picture in result.pictures)
    return replace(result, images=sums / counts, labels=labels[0], pictures=pictures)


def pair_versions(images: Tensor, labels: Tensor, others: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
    """Pair the images of the first pass with those of another, which may have fewer: places in both."""
    apart = (images[:, None] - others[None]).square().flatten(2).mean(2).cpu()
    wrong = (labels[:, None] != given[None]).cpu()
    own, theirs = linear_sum_assignment((apart + WRONG_LABEL * wrong).numpy())
    return torch.from_numpy(own), torch.from_numpy(theirs)
