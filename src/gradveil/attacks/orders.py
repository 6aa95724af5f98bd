"""In which order a client used its images: nobody says, and the weight change depends on it.

A use is one image in one local step. A client who passes over N images several times uses each of them once in every
pass; the uses of a pass stand one after the other, N of them, and are cut into local batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradveil.attacks.distances import lay_flat, sizes_of
from gradveil.attacks.starts import find_class
from gradveil.client import Simulation
from gradveil.errors import KnowledgeError
from gradveil.types import Task, Update

TOGETHER = 64
"""Orders that are simulated as one tensor batch."""
SWAPS = 96
"""Swaps that are tried before the best of them is made."""
ROUNDS = 24
"""Swaps that are made at most."""


def count_uses(update: Update) -> int:
    """Count the uses of a client's images: its steps times the size of its batches."""
    return update.local.count_steps(update.images) * update.local.size_of(update.images)


def order_matters(update: Update) -> bool:
    """Tell whether an unknown order makes a difference: several steps, none of which uses all images at once."""
    return update.local.takes_steps and update.local.size_of(update.images) < update.images


def order_is_known(update: Update) -> bool:
    """Tell whether the labels that came with an update stand in the order of use."""
    return update.labels is not None and not update.local.shuffle


def unroll(update: Update) -> Update:
    """Describe the same work as one pass over as many images as there are uses; the labels are left to the search."""
    local, size = update.local, update.local.size_of(update.images)
    if local.epochs is not None and update.images % size:
        raise KnowledgeError(
            f"passes over {update.images} images in batches of {size}: the order is searched for only if the batches "
            "of a pass are equally large"
        )
    if count_uses(update) < update.images:
        raise KnowledgeError(f"{update.images} images of which only {count_uses(update)} were used: name those")
    steps = local.count_steps(update.images)
    once = replace(local, epochs=None, steps=steps, batch_size=size, shuffle=False)
    return replace(update, images=count_uses(update), local=once, labels=None)


@dataclass(frozen=True, eq=False)
class Order:
    """What was used one after the other: images, U×C×H×W, and labels, U; and how far their update is off."""

    images: Tensor
    labels: Tensor
    loss: float


class OrderSearch:
    """Compare orders by the update that they lead to, 1 − cosine; no slope is computed, so each costs little.

    `update` is unrolled; `per_pass` is the number of images, so of uses in one pass.
    """

    def __init__(self, task: Task, update: Update, per_pass: int) -> None:
        tensors = {name: tensor[None] for name, tensor in update.tensors.items()}
        self.task, self.uses, self.per_pass = task, update.images, per_pass
        self.batch = update.local.size_of(update.images)
        self.sizes = sizes_of(tensors)
        self.released = lay_flat(tensors, self.sizes)
        self.simulation = Simulation(task.model, task.loss, update.local, task.shape)

    def losses(self, images: Tensor, labels: Tensor) -> Tensor:
        """Measure T orders, T×U×C×H×W and T×U."""
        parts = []
        with torch.no_grad():
            for fed, given in zip(torch.split(images, TOGETHER), torch.split(labels, TOGETHER), strict=True):
                ours = self.simulation.flat(fed, given, self.sizes)
                parts.append(1 - torch.cosine_similarity(ours, self.released))
        return torch.cat(parts).nan_to_num(torch.inf)

    def misfit(self, order: Order) -> float:
        """Measure how far an order's update is from the released one, as a share of it: here length counts as well."""
        with torch.no_grad():
            ours = self.simulation.flat(order.images[None], order.labels[None], self.sizes)
        return float((ours - self.released).norm() / self.released.norm())

    def draw(self, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the labels of all uses: in every pass the labels, N, in an order of its own."""
        passes = -(-self.uses // self.per_pass)
        orders = [torch.randperm(len(labels), generator=generator, device=generator.device) for _ in range(passes)]
        return torch.cat([labels[order.to(labels.device)] for order in orders])[: self.uses]

    def begin(self, labels: Tensor, tried: int, kept: int, generator: torch.Generator) -> list[Order]:
        """Draw orders, keep the best, and swap labels in each of these for as long as that helps.

        The images are not known yet. The mean of the public images of its class stands for each of them, the mean
        colour where there are none.
        """
        stand_ins = self.stand_ins()
        drawn = torch.stack([self.draw(labels, generator) for _ in range(tried)])
        losses = self.losses(stand_ins[drawn], drawn)
        best = losses.argsort(stable=True)[:kept].tolist()
        orders = [Order(stand_ins[drawn[row]], drawn[row], float(losses[row])) for row in best]
        return keep_different([self.improve(order, generator) for order in orders])

    def stand_ins(self) -> Tensor:
        """Make an image for each class, K×C×H×W."""
        task, device = self.task, self.released.device
        if not task.public:
            colour = torch.tensor(task.mean, device=device).view(-1, 1, 1)
            return colour.expand(task.classes, *task.shape)
        pixels = task.public.pixels().to(device)
        return torch.stack([pixels[find_class(task, label)].mean(0) for label in torch.arange(task.classes)])

    def improve(self, order: Order, generator: torch.Generator) -> Order:
        """Swap two uses of one pass, images with their labels, for as long as that brings the update nearer."""
        for _ in range(ROUNDS):
            swaps = self.draw_swaps(order.labels, generator)
            if not swaps:
                break
            places = torch.stack([swapped(self.uses, *swap) for swap in swaps]).to(order.labels.device)
            losses = self.losses(order.images[places], order.labels[places])
            best = int(losses.argmin())
            if not float(losses[best]) < order.loss:
                break
            order = Order(order.images[places[best]], order.labels[places[best]], float(losses[best]))
        return order

    def draw_swaps(self, labels: Tensor, generator: torch.Generator) -> list[tuple[int, int]]:
        """List swaps of different labels between different steps of one pass, a random choice if there are many."""
        known, size, batch = labels.tolist(), self.per_pass, self.batch
        possible = [
            (one, other)
            for one in range(self.uses)
            for other in range(one + 1, min(self.uses, (one // size + 1) * size))
            if one // batch != other // batch and known[one] != known[other]
        ]
        order = torch.randperm(len(possible), generator=generator, device=generator.device)[:SWAPS]
        return [possible[place] for place in order.tolist()]


def swapped(count: int, one: int, other: int) -> Tensor:
    """List the places from 0 to `count` with two of them swapped."""
    places = torch.arange(count)
    places[one], places[other] = other, one
    return places


def keep_different(orders: Sequence[Order]) -> list[Order]:
    """Leave out orders that are the same as an earlier one; the best comes first."""
    different: dict[tuple[int, ...], Order] = {}
    for order in sorted(orders, key=lambda one: one.loss):
        different.setdefault(tuple(order.labels.tolist()), order)
    return list(different.values())
