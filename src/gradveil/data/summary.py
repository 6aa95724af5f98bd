"""What a data set holds, in figures."""

from dataclasses import dataclass

import torch

from gradveil.data.base import DataSet, ImageSet


@dataclass(frozen=True)
class Summary:
    """Counts per class (one for each class name) and the images that are in both splits."""

    train_per_class: tuple[int, ...]
    test_per_class: tuple[int, ...]
    test_images_in_train: int


def summarise(dataset: DataSet) -> Summary:
    """Count the images of each class, and the test images that are exact copies of training images."""
    train, test = (
        tuple(torch.bincount(split.labels, minlength=dataset.classes).tolist())
        for split in (dataset.train, dataset.test)
    )
    known = set(hashes(dataset.train))
    return Summary(train, test, sum(found in known for found in hashes(dataset.test)))


def hashes(images: ImageSet) -> list[int]:
    """Hash the pixels of each image; two different images share one of 64 bits only by a rare accident."""
    return [hash(image.tobytes()) for image in images.images.numpy()]
