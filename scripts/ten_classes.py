"""Write ten classes of CIFAR-100 to one file: python -m scripts.ten_classes DATA_ROOT FILE.npz

The classes are drawn at random from a seed, and numbered anew. `gradveil reproduce attackers --colour npz:FILE.npz`
attacks a network that such a file trains: on ten classes a small one learns enough in minutes. The file is for your own
use; the images carry no licence to pass them on.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gradveil.data import ImageSet
from gradveil.errors import GradveilError
from gradveil.experiments.paper.scales import CIFAR
from gradveil.experiments.paper.sources import load_images
from gradveil.rng import generator
from gradveil.study import silent

CLASSES = 10
SEED = 1


def choose_classes(classes: int) -> list[int]:
    """Draw the classes; they stay in the order of their numbers."""
    return torch.randperm(classes, generator=generator(SEED, "ten classes"))[:CLASSES].sort().values.tolist()


def take_classes(split: ImageSet, chosen: list[int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the images of the chosen classes in their order, and their new labels."""
    numbers = torch.full((int(split.labels.max()) + 1,), -1)
    numbers[chosen] = torch.arange(len(chosen))
    labels = numbers[split.labels]
    return split.images[labels >= 0].numpy(), labels[labels >= 0].numpy()


def main(root: str, place: str) -> None:
    """Write the file and say which classes it has."""
    data = load_images(CIFAR, Path(root), silent)
    chosen = choose_classes(data.classes)
    (train_images, train_labels), (test_images, test_labels) = (
        take_classes(split, chosen) for split in (data.train, data.test)
    )
    names = [data.class_names[one] for one in chosen]
    np.savez(
        place,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        class_names=np.array(names),
    )
    print(f"{place}: {', '.join(names)}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (GradveilError, OSError) as error:
        sys.exit(f"ten_classes: {error}")
