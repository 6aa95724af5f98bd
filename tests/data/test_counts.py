"""Counts of a data set."""

import torch

from gradveil import data
from gradveil.data.base import ImageSet, assemble


def test_images_are_counted_by_class() -> None:
    images = torch.arange(7 * 16, dtype=torch.uint8).reshape(7, 1, 4, 4)
    whole = ImageSet(images, torch.tensor([0, 2, 2, 1, 2, 0, 2]))
    dataset = assemble("own", whole.take(torch.arange(5)), whole.take(torch.tensor([5, 6])), ("a", "b", "c"))
    assert data.count_images(dataset) == data.Counts((1, 1, 3), (1, 0, 1), 0)


def test_copies_across_the_splits_are_counted() -> None:
    sample = data.load("fashion-mnist-sample")
    sample.test.images[:3] = sample.train.images[[7, 7, 4000]]
    assert data.count_images(sample).test_images_in_train == 3
