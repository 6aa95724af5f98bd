"""Count the images of a data set."""

from dataclasses import dataclass

import torch

from gradveil.data.base import DataSet, ImageSet


@dataclass(frozen=True)
class Counts:
    """Images of each class, and test images that are also training images."""

    train_per_class: tuple[int, ...]
    test_per_class: tuple[int, ...]
    test_images_in_train: int


def count_images(dataset: DataSet) -> Counts:
    """Count the images of each class, and the test images that are exact copies of training images."""
    train, test = (
        tuple(torch.bincount(split.labels, minlength=dataset.classes).tolist())
        for split in (dataset.train, dataset.test)
    )
    known = set(hash_images(dataset.train))
    return Counts(train, test, sum(pixels in known for pixels in hash_images(dataset.test)))


def hash_images(images: ImageSet) -> list[int]:
    """Hash the pixels of each image to 64 bits; two different images almost never share a hash."""
    return [hash(image.tobytes()) for image in images.images.numpy()]
