"""Divide images into a training and a test split."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.data.base import ImageSet
from gradveil.errors import SettingsError
from gradveil.rng import generator


@dataclass(frozen=True)
class Split:
    """How a test split is drawn for data without one: a share of each class."""

    test_fraction: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.test_fraction < 1:
            raise SettingsError(f"test-fraction={self.test_fraction} is out of range: give a number between 0 and 1")

    def draw(self, labels: Tensor) -> Tensor:
        """Draw which images are for training, as a mask.

        A class of two images or more is in both splits; a single image is for training.
        """
        source = generator(self.seed, "data", "test split")
        in_train = torch.ones(len(labels), dtype=torch.bool)
        for label in torch.unique(labels):
            members = (labels == label).nonzero().flatten()
            count = min(max(round(self.test_fraction * len(members)), 1), len(members) - 1)
            in_train[members[torch.randperm(len(members), generator=source)[:count]]] = False
        return in_train


def split_images(images: ImageSet, in_train: Tensor) -> tuple[ImageSet, ImageSet]:
    """Divide images by a mask; both splits keep the order."""
    count = int(in_train.sum())
    if in_train[:count].all():  # the usual case of two lists one after the other needs no copy
        return (
            ImageSet(images.images[:count], images.labels[:count]),
            ImageSet(images.images[count:], images.labels[count:]),
        )
    return images.take(in_train.nonzero().flatten()), images.take((~in_train).nonzero().flatten())
