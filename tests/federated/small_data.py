"""A small data set for collaborative training: 12×12 images of 4 classes that a model can learn."""

import torch

from gradveil.data import DataSet, ImageSet
from gradveil.rng import generator

CLASSES = 4


def make_images(count: int, seed: int) -> ImageSet:
    """Draw images whose bright quarter is their class."""
    source = generator(seed)
    labels = torch.arange(count) % CLASSES
    images = torch.randint(0, 120, (count, 1, 12, 12), dtype=torch.uint8, generator=source)
    for row, label in enumerate(labels.tolist()):
        top, left = 6 * (label // 2), 6 * (label % 2)
        images[row, :, top : top + 6, left : left + 6] += 100
    return ImageSet(images, labels)


def make_data(train: int = 96, test: int = 40) -> DataSet:
    names = tuple(f"class {label}" for label in range(CLASSES))
    return DataSet("small", make_images(train, 1), make_images(test, 2), names, (0.3,), (0.25,))
