"""Data sets from torch."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from gradveil.data import count_images, from_torch
from gradveil.errors import DataError
from gradveil.rng import generator

BYTES = torch.randint(256, (30, 3, 5, 6), generator=generator(0, "images")).to(torch.uint8)
LABELS = torch.arange(30) % 3


class Pairs(Dataset[tuple[Tensor, int]]):
    """A map-style data set that never raises IndexError, as many do not."""

    def __init__(self, images: Tensor, labels: Tensor = LABELS) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.images[index % len(self)], int(self.labels[index % len(self)])


class Stream(IterableDataset[tuple[Tensor, int, str]]):
    def __iter__(self) -> Iterator[tuple[Tensor, int, str]]:
        for image, label in zip(BYTES, LABELS, strict=True):
            yield image, int(label), "more"


@pytest.mark.parametrize(
    "pairs",
    [
        Pairs(BYTES),
        Pairs(BYTES.float() / 255),
        Pairs(BYTES.double() / 255 + 0.001 * (BYTES < 255)),
        TensorDataset(BYTES, LABELS),
        Stream(),
        DataLoader(Pairs(BYTES.float() / 255), batch_size=7),
    ],
    ids=["bytes", "float", "between", "tensors", "stream", "loader"],
)
def test_every_kind_gives_the_same_images(pairs: "Dataset[object] | DataLoader[object]") -> None:
    dataset = from_torch(pairs, pairs, name="mine", class_names=("a", "b", "c"))
    for split in (dataset.train, dataset.test):
        assert torch.equal(split.images, BYTES)
        assert torch.equal(split.labels, LABELS)
    assert (dataset.name, dataset.class_names, dataset.shape) == ("mine", ("a", "b", "c"), (3, 5, 6))


def test_a_test_split_is_drawn_from_each_class() -> None:
    dataset, again, other = (from_torch(Pairs(BYTES), seed=seed) for seed in (0, 0, 1))
    counts = count_images(dataset)
    assert (counts.train_per_class, counts.test_per_class, counts.test_images_in_train) == ((8,) * 3, (2,) * 3, 0)
    assert dataset.class_names == ("0", "1", "2")
    assert torch.equal(dataset.test.images, again.test.images)
    assert not torch.equal(dataset.test.images, other.test.images)


def test_grey_images_may_lack_the_channel() -> None:
    assert from_torch(Pairs(BYTES[:, 0])).shape == (1, 5, 6)


class Varied(Pairs):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        return image[:, : 4 + index % 2], label


class Named(Pairs):
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return "picture", 0  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (Pairs(BYTES / 255 * 2 - 1), r"values from -1 to 1: .*normalisation out of the data set .* first layer"),
        (Pairs(BYTES.float()), r"values from 0 to 255: they must be in \[0, 1\]"),
        (Pairs(BYTES.float() * float("nan")), "values from nan to nan"),
        (Pairs(BYTES.long()), r"images of torch\.int64: they must be uint8, or float"),
        (Pairs(BYTES[:, 0, 0]), r"a tensor of shape \(6,\) as an image: make it a tensor of shape C×H×W or H×W"),
        (Named(BYTES), "holds str as an image"),
        (Varied(BYTES), r"torch\.uint8 of \(3, 4, 6\), torch\.uint8 of \(3, 5, 6\): all images must have one shape"),
        (Pairs(BYTES[:0]), "holds no images"),
        (Pairs(BYTES, LABELS - 1), "labels from -1 to 1"),
        (Pairs(BYTES[:, :1].expand(-1, 4, -1, -1)), "N×1×H×W or N×3×H×W"),
    ],
)
def test_what_cannot_be_used_is_refused(pairs: Pairs, message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_torch(pairs, pairs)


@pytest.mark.parametrize("labels", [torch.eye(3)[LABELS], LABELS + 0.5, LABELS * float("nan")])
def test_labels_that_are_no_whole_numbers_are_refused(labels: Tensor) -> None:
    with pytest.raises(DataError, match="it must be a whole number from 0"):
        from_torch(TensorDataset(BYTES, labels))


def test_more_labels_than_names_are_refused() -> None:
    with pytest.raises(DataError, match="labels from 0 to 2: they must be from 0 to 1"):
        from_torch(Pairs(BYTES), class_names=("a", "b"))
