from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil.data.base import DataSet, ImageSet, assemble, channel_statistics, require_counts
from gradveil.errors import DataError


def image_set(count: int = 4, classes: int = 2, shape: tuple[int, int, int] = (3, 5, 5)) -> ImageSet:
    images = torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(count))
    return ImageSet(images, torch.arange(count) % classes)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_statistics_are_the_exact_ones_rounded_once(count: int, side: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 3, side, side), dtype=np.uint8)
    mean, std = channel_statistics(torch.from_numpy(pixels))
    for channel in range(3):
        values = [Fraction(int(value), 255) for value in pixels[:, channel].ravel()]
        exact = sum(values, Fraction(0)) / len(values)
        variance = sum(((value - exact) ** 2 for value in values), Fraction(0)) / len(values)
        assert mean[channel] == float(exact)
        assert std[channel] == float(variance) ** 0.5


def test_statistics_hold_where_a_float32_sum_fails() -> None:
    images = torch.full((5000, 1, 64, 64), 255, dtype=torch.uint8)
    images[:, :, ::2] = 254
    (mean,), (std,) = channel_statistics(images)
    assert mean == 254.5 / 255
    assert std == 0.5 / 255


def test_images_must_be_bytes_in_planes() -> None:
    with pytest.raises(DataError, match="must be uint8"):
        ImageSet(torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(DataError, match="must be uint8 of shape"):
        ImageSet(torch.zeros(2, 4, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(DataError, match=r"int64 of shape \(2,\)"):
        ImageSet(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64))


def test_taking_keeps_the_order_asked_for() -> None:
    images = image_set()
    taken = images.take(torch.tensor([3, 0]))
    assert torch.equal(taken.images, images.images[[3, 0]])
    assert taken.labels.tolist() == [1, 0]


def test_a_data_set_knows_its_shape_and_statistics() -> None:
    dataset = assemble("two", image_set(6), image_set(4), ("a", "b"), skipped=("x",))
    assert dataset.shape == (3, 5, 5)
    assert dataset.classes == 2
    assert dataset.skipped == ("x",)
    assert (dataset.mean, dataset.std) == channel_statistics(dataset.train.images)


@pytest.mark.parametrize(
    ("train", "test", "names", "message"),
    [
        (image_set(4), image_set(4, shape=(3, 6, 6)), ("a", "b"), "they must agree"),
        (image_set(4), image_set(4, classes=3), ("a", "b"), "labels from 0 to 2"),
        (image_set(4), image_set(0), ("a", "b"), "empty split"),
        (image_set(0), image_set(4), ("a", "b"), "no training image of 2 of its 2 classes"),
        (image_set(4, classes=1), image_set(4, classes=1), ("a",), "at least two are needed"),
        (image_set(4), image_set(4), ("a", "b", "c", "d", "e", "f", "g"), r"\(c, d, e and 2 more\)"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    train: ImageSet, test: ImageSet, names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        assemble("bad", train, test, names)


def test_a_channel_that_never_changes_is_refused() -> None:
    train = image_set(4)
    train.images[:, 1] = 7
    with pytest.raises(DataError, match="divided by it"):
        assemble("flat", train, image_set(4), ("a", "b"))


def test_statistics_must_match_the_channels() -> None:
    with pytest.raises(DataError, match="each channel needs one"):
        DataSet("bad", image_set(4), image_set(4), ("a", "b"), mean=(0.5,), std=(0.2,))


def test_counts_of_the_official_files_are_required() -> None:
    dataset = assemble("cifar10", image_set(6), image_set(4), ("a", "b"))
    assert require_counts(dataset, 6, 4) is dataset
    with pytest.raises(DataError, match="6 training and 4 test images, the official ones 50,000 and 10,000"):
        require_counts(dataset, 50_000, 10_000)
