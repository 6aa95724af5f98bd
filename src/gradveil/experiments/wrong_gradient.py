"""The null of an audit, made on purpose: clients release the gradient of another image with the same label."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from gradveil.data import DataSet, ImageSet, stratify
from gradveil.defences import Arm, Compute, Defence, Hook, defend_batch
from gradveil.gradients import Tensors
from gradveil.losses import Loss
from gradveil.rng import generator
from gradveil.types import Batch

SET_ASIDE = 10
"""Test images of each class that stand in for the attacked ones; they are neither attacked nor candidates."""


class WrongGradient(Defence):
    """Compute the gradient of other images with the same labels, with draws of their own of the `defences`.

    What the audit takes for the truth is then not what was released, so that whatever it finds is false.
    """

    hooks: ClassVar[tuple[Hook, ...]] = ("compute",)

    def __init__(self, others: ImageSet, defences: Sequence[Defence]) -> None:
        self.others, self.defences = others, tuple(defences)

    def __str__(self) -> str:
        return "wrong-gradient"

    def compute(self, inner: Compute) -> Compute:
        def compute_other(model: nn.Module, loss: Loss, batch: Batch, source: torch.Generator) -> Tensors:
            return inner(model, loss, self.swap(batch, source), source)

        return compute_other

    def swap(self, batch: Batch, source: torch.Generator) -> Batch:
        """Take another image of the same label for each, fed as the defences feed it."""
        places = torch.tensor([self.draw(int(label), source) for label in batch.labels])
        fed = defend_batch(self.defences, self.others.take(places).batch(), source)
        return fed.to(batch.images.device)

    def draw(self, label: int, source: torch.Generator) -> int:
        places = (self.others.labels == label).nonzero().flatten()
        return int(places[torch.randint(len(places), (1,), generator=source)])


def set_aside(data: DataSet, seed: int) -> tuple[DataSet, ImageSet]:
    """Take a few test images of each class out of a data set; an audit of the rest cannot meet them."""
    order = stratify(data.test.labels, generator(seed, "set aside"))
    count = SET_ASIDE * data.classes
    aside: Tensor = order[:count]
    return replace(data, test=data.test.take(order[count:].sort().values)), data.test.take(aside)


def swap_gradients(arm: Arm, others: ImageSet) -> Arm:
    """Make an arm of the same name whose clients release the gradients of `others`."""
    return Arm(arm.name, (*arm.defences, WrongGradient(others, arm.defences)))
