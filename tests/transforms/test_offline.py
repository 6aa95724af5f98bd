"""Arrays of images, transformed once."""

import numpy as np
import pytest
import torch

from gradveil.errors import DataError
from gradveil.rng import generator
from gradveil.transforms import parse_policy, transform_array, transform_arrays

PLANES = torch.randint(256, (6, 3, 8, 9), generator=generator(0, "planes")).to(torch.uint8)
POLICY = parse_policy("3-1-7+43-18-18")


def test_every_form_gives_the_same_images() -> None:
    expected = POLICY.transform(PLANES, generator(1)).numpy()
    assert np.array_equal(transform_array(PLANES.numpy(), POLICY, generator(1)), expected)
    last = transform_array(PLANES.permute(0, 2, 3, 1).numpy(), POLICY, generator(1))
    assert np.array_equal(last, expected.transpose(0, 2, 3, 1))
    grey = transform_array(PLANES[:, 0].numpy(), POLICY, generator(1))
    assert np.array_equal(grey, POLICY.transform(PLANES[:, :1], generator(1))[:, 0].numpy())


def test_each_array_of_images_has_its_own_draws() -> None:
    images = PLANES.numpy()
    arrays = {"train_images": images, "test_images": images, "labels": np.arange(6)}
    changed = transform_arrays(arrays, POLICY, 3)
    assert np.array_equal(
        changed["train_images"], transform_array(images, POLICY, generator(3, "offline", "train_images"))
    )
    assert not np.array_equal(changed["train_images"], changed["test_images"])
    assert changed["labels"] is arrays["labels"]


def test_arrays_that_are_no_images_are_refused() -> None:
    with pytest.raises(DataError, match="the arrays labels hold no images"):
        transform_arrays({"labels": np.arange(6)}, POLICY, 0)
    with pytest.raises(DataError, match=r"float64 of shape \(2, 4, 4\): they must be uint8"):
        transform_array(np.zeros((2, 4, 4)), POLICY, generator(0))
    with pytest.raises(DataError, match="they must be uint8 of shape"):
        transform_array(np.zeros((4, 4), np.uint8), POLICY, generator(0))
