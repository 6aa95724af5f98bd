"""What a defence is: three hooks around the computation of an update."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import nn

from gradveil.types import Batch, Update


class Defence(ABC):
    """Something a client does to keep its images to itself; every hook is the identity by default."""

    @abstractmethod
    def __str__(self) -> str:
        """Write the defence as an arm would name it, settings included."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def model(self, model: nn.Module) -> nn.Module:
        """Change the model before anyone trains it."""
        return model

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:  # noqa: ARG002
        """Change the images before the gradient is computed."""
        return batch

    def release(self, update: Update, generator: torch.Generator) -> Update:  # noqa: ARG002
        """Change the update before it leaves the client."""
        return update


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
