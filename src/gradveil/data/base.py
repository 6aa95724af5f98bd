"""The type of every data set, and what all of them share."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.errors import DataError, printable
from gradveil.types import Batch

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


def silent(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""


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

    def batch(self) -> Batch:
        """Return all images as one batch."""
        return Batch(self.images, self.labels)

    def take(self, indices: Tensor) -> "ImageSet":
        """Keep the images at `indices`, in that order."""
        return ImageSet(self.images[indices], self.labels[indices])


@dataclass(frozen=True, eq=False)
class DataSet:
    """A training and a test split with what is public about both.

    `mean` and `std` are per channel, in [0, 1], of this data set's own training images. `skipped` names the broken
    files that were left out because the user asked for it.
    """

    name: str
    train: ImageSet
    test: ImageSet
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    skipped: tuple[str, ...] = ()

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
        if not len(self.mean) == len(self.std) == self.shape[0] or not all(deviation > 0 for deviation in self.std):
            raise DataError(
                f"data set '{self.name}' has the standard deviations {self.std} for {self.shape[0]} channels: each "
                "channel needs one above 0, because images are divided by it; leave out a channel that never changes"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def classes(self) -> int:
        return len(self.class_names)


def assemble(
    name: str, train: ImageSet, test: ImageSet, class_names: tuple[str, ...], skipped: tuple[str, ...] = ()
) -> DataSet:
    """Make a data set with its own statistics; refuse one without two classes, or with a class that has no image."""
    if len(class_names) < 2:
        raise DataError(
            f"data set '{name}' has {len(class_names)} class: at least two are needed to train a classifier"
        )
    present = set(train.labels.tolist())
    empty = [label for index, label in enumerate(class_names) if index not in present]
    if empty:
        raise DataError(
            f"data set '{name}' has no training image of {len(empty)} of its {len(class_names)} classes "
            f"({list_names(empty)}): add images, or leave these classes out"
        )
    mean, std = channel_statistics(train.images)
    return DataSet(name, train, test, class_names, mean, std, skipped)


def require_counts(dataset: DataSet, train: int, test: int) -> DataSet:
    """Refuse a data set that has another number of images than the official one."""
    if (len(dataset.train), len(dataset.test)) != (train, test):
        raise DataError(
            f"these files of {dataset.name} have {len(dataset.train):,} training and {len(dataset.test):,} test "
            f"images, the official ones {train:,} and {test:,}: get them again with "
            f"'gradveil data get {dataset.name}', or load your own images with npz:PATH or folder:PATH"
        )
    return dataset


def list_names(names: list[str], shown: int = 3) -> str:
    """Name the first few, with odd characters escaped, and count the rest.

    >>> list_names(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    rest = len(names) - shown
    return ", ".join(map(printable, names[:shown])) + (f" and {rest} more" if rest > 0 else "")


def channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Take the mean and standard deviation per channel of uint8 images, in [0, 1].

    The sums are exact whole numbers, taken from a histogram: a float32 sum over 50,000 images comes out wrong.
    """
    means, deviations = [], []
    for channel in images.unbind(1):
        counts = histogram(channel)
        number = sum(counts)
        total = sum(level * count for level, count in enumerate(counts))
        squares = sum(level * level * count for level, count in enumerate(counts))
        means.append(total / (255 * number))
        deviations.append(((number * squares - total * total) / (255 * number) ** 2) ** 0.5)
    return tuple(means), tuple(deviations)


def histogram(values: Tensor, rows: int = 4096) -> list[int]:
    """Count each of the 256 levels, some rows at a time: `bincount` copies its input."""
    counts = torch.zeros(256, dtype=torch.int64)
    for part in torch.split(values, rows):
        counts += torch.bincount(part.flatten(), minlength=256)
    return [int(count) for count in counts]
