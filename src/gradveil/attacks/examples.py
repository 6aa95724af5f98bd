"""What is learnt from: features of updates, each beside the picture that it came from."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from gradveil.types import Batch


@dataclass(frozen=True, eq=False)
class Examples:
    """One row for each image: features, the class's mean, how far it is from this, what was fed, and its ties.

    Images of one update with one label have the same number in `ties`: nothing says which of them is which.
    """

    features: Tensor
    base: Tensor
    gaps: Tensor
    fed: Tensor
    ties: Tensor

    @staticmethod
    def join(parts: "Sequence[Examples]") -> "Examples":
        """Put examples one after the other."""
        starts = [0, *itertools.accumulate(int(part.ties.max()) + 1 for part in parts)]
        numbered = [replace(part, ties=part.ties + start) for part, start in zip(parts, starts, strict=False)]
        return Examples(*(torch.cat([getattr(part, one.name) for part in numbered]) for one in fields(Examples)))


def class_means(batch: Batch, classes: int) -> Tensor:
    """Return the mean picture of each class, flat; of all images if the class has none."""
    pixels = batch.pixels().flatten(1)
    sums = torch.zeros(classes, pixels.shape[1]).index_add_(0, batch.labels, pixels)
    counts = torch.bincount(batch.labels, minlength=classes)[:, None]
    return torch.where(counts > 0, sums / counts.clamp(min=1), pixels.mean(0))
