"""The one type that every data set is turned into."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.errors import DataError


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images and labels of one split: uint8 N×C×H×W and int64 N."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.dim() != 4 or self.images.shape[1] not in (1, 3):
            raise DataError(
                f"images are {self.images.dtype} of shape {tuple(self.images.shape)}: "
                "they must be uint8 of shape N×1×H×W or N×3×H×W"
            )
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise DataError(
                f"labels are {self.labels.dtype} of shape {tuple(self.labels.shape)}: "
                f"they must be int64 of shape ({self.images.shape[0]},)"
            )

    def __len__(self) -> int:
        return self.images.shape[0]

    def take(self, indices: Tensor) -> "ImageSet":
        """Keep the images at `indices`, in that order."""
        return ImageSet(self.images[indices], self.labels[indices])


@dataclass(frozen=True, eq=False)
class DataSet:
    """A training and a test split with what is publicly known of both.

    `mean` and `std` are per channel, in [0, 1], of this data set's own training images.
    """

    name: str
    train: ImageSet
    test: ImageSet
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.train) == 0 or len(self.test) == 0:
            raise DataError(f"data set '{self.name}' has an empty split: both need at least one image")
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            raise DataError(
                f"data set '{self.name}' has training images of shape {tuple(self.train.images.shape[1:])} and test "
                f"images of shape {tuple(self.test.images.shape[1:])}: they must agree"
            )
        for split in (self.train, self.test):
            low, high = int(split.labels.min()), int(split.labels.max())
            if low < 0 or high >= self.classes:
                raise DataError(
                    f"data set '{self.name}' has labels from {low} to {high}: "
                    f"they must be from 0 to {self.classes - 1}, one for each class name"
                )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def classes(self) -> int:
        return len(self.class_names)


def channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Take the mean and standard deviation per channel of uint8 images, in [0, 1].

    Works on the exact histogram: a float32 sum over 50,000 images comes out wrong.
    """
    means, deviations = [], []
    levels = torch.arange(256, dtype=torch.float64) / 255
    for channel in images.unbind(1):
        share = torch.bincount(channel.flatten().long(), minlength=256).double() / channel.numel()
        mean = (share * levels).sum()
        means.append(float(mean))
        deviations.append(float((share * (levels - mean) ** 2).sum().sqrt()))
    return tuple(means), tuple(deviations)
