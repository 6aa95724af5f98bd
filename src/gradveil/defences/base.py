"""What a defence is: hooks around the computation of an update."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import nn

from gradveil.client import Tensors, gradient
from gradveil.rng import global_state_from, split
from gradveil.types import Batch, Loss, Update

Compute = Callable[[nn.Module, Loss, Batch, torch.Generator], Tensors]
"""A way to turn a batch into one gradient."""


class Defence(ABC):
    """Something a client does to keep its images to itself; every hook is the identity by default.

    Most defences need `model`, `batch` or `release` only. `compute` is for those that must see the gradients or the
    features of single images. A defence that mixes images says with how many others it mixes each (`companions`).
    """

    companions: ClassVar[int] = 0

    @abstractmethod
    def __str__(self) -> str:
        """Write the defence as an arm would name it, settings included."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def model(self, model: nn.Module, generator: torch.Generator) -> nn.Module:  # noqa: ARG002
        """Give the model as it has to be before anyone trains it; the one given is left as it is."""
        return model

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:  # noqa: ARG002
        """Change the images before the gradient is computed."""
        return batch

    def compute(self, inner: Compute) -> Compute:
        """Change how the gradient of a batch is computed."""
        return inner

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        """Change the update before it leaves the client."""
        return update

    def deviation(self, images: int) -> float:  # noqa: ARG002
        """Give the standard deviation of the noise it adds to every entry of an update of so many images."""
        return 0.0


def defend_model(defences: Sequence[Defence], model: nn.Module, generator: torch.Generator) -> nn.Module:
    """Apply the model hooks in order."""
    for defence in defences:
        model = defence.model(model, generator)
    return model


def defend_batch(defences: Sequence[Defence], batch: Batch, generator: torch.Generator) -> Batch:
    """Apply the batch hooks in order."""
    for defence in defences:
        batch = defence.batch(batch, generator)
    return batch


def defend_release(defences: Sequence[Defence], update: Update, generator: torch.Generator) -> Update:
    """Apply the release hooks in order."""
    for defence in defences:
        update = defence.release(update, generator)
    return update


def compute_plainly(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
    """Take the gradient of the batch; layers that draw, draw from `generator`."""
    with global_state_from(generator):
        tensors = gradient(model, loss, batch.pixels(), batch.labels)
    return {name: tensor.detach() for name, tensor in tensors.items()}


def compute_defended(defences: Sequence[Defence]) -> Compute:
    """Wrap the plain computation in the compute hooks, the first defence innermost."""
    compute: Compute = compute_plainly
    for defence in defences:
        compute = defence.compute(compute)
    return compute


def defend_update(
    defences: Sequence[Defence],
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    generator: torch.Generator,
    share_labels: bool = True,
) -> Update:
    """Compute exactly what leaves a client that feeds `batch` to the model: one gradient."""
    computing, releasing = split(generator, 2)
    tensors = compute_defended(defences)(model, loss, batch, computing)
    update = Update(tensors, len(batch), labels=batch.labels.clone() if share_labels else None)
    return defend_release(defences, update, releasing)


def known_deviation(defences: Sequence[Defence], images: int) -> float:
    """Give the standard deviation of all the noise in an update of so many images; 0 if there is none to speak of.

    Noise that was clipped, rounded or partly zeroed afterwards is no longer of the deviation that it had; whatever is
    released was computed before.
    """
    variance = 0.0
    for defence in sorted(defences, key=lambda one: type(one).compute is Defence.compute):
        own = defence.deviation(images)
        if own == 0 and type(defence).release is not Defence.release:
            variance = 0.0
        variance += own**2
    return math.sqrt(variance)


def changes_gradient(defences: Sequence[Defence]) -> bool:
    """Tell whether what is released differs from the gradient of what was fed."""
    kinds = [type(defence) for defence in defences]
    return any(kind.release is not Defence.release or kind.compute is not Defence.compute for kind in kinds)
