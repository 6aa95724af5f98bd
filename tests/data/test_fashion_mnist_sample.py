"""The sample that comes with gradveil."""

from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import fashion_mnist_sample
from gradveil.errors import DataError


def test_the_sample_loads_from_anywhere(tmp_path: Path) -> None:
    sample = data.load("fashion-mnist-sample")
    assert (len(sample.train), len(sample.test), sample.shape, sample.classes) == (5000, 1000, (1, 28, 28), 10)
    assert torch.equal(sample.test.images, data.load("fashion-mnist-sample", tmp_path).test.images)


def test_the_sample_is_balanced_and_its_splits_are_apart() -> None:
    counts = data.count_images(data.load("fashion-mnist-sample"))
    assert counts.train_per_class == (500,) * 10
    assert counts.test_per_class == (100,) * 10
    assert counts.test_images_in_train == 0


def test_a_damaged_sample_is_refused() -> None:
    content = fashion_mnist_sample.find().read_bytes()
    with pytest.raises(DataError, match=r"damaged: its SHA-256 is .*reinstall gradveil"):
        fashion_mnist_sample.parse(content[:-1] + bytes([content[-1] ^ 1]))
