"""Where the images of the study come from."""

from dataclasses import replace
from pathlib import Path

import torch

from gradveil import data as data_sets
from gradveil.data import DataSet, choose_private, spread
from gradveil.errors import DataError
from gradveil.experiments.paper.scales import CIFAR, FASHION, SAMPLE, TINY, TINY_100
from gradveil.rng import generator
from gradveil.study import OnProgress

FILES = {
    CIFAR: ("cifar100_train_part*.npz", "cifar100_test.npz"),
    TINY_100: ("tinyimagenet_train100_jpeg.npz", "tinyimagenet_val_jpeg.npz"),
}
"""Files of numpy that may stand in the data root instead of the official archives."""
OFFICIAL = (CIFAR, FASHION, TINY)
SMALL_TRAIN, SMALL_TEST = 400, 120


def load_images(name: str, root: Path | None, progress: OnProgress) -> DataSet:
    """Load a data set of the study: from the data root, or from where this machine has it."""
    if name == SAMPLE:
        return shrink(data_sets.load("fashion-mnist-sample", None, progress))
    train, test = FILES.get(name, ("", ""))
    if root is not None and train and (root / test).is_file():
        return replace(data_sets.load(f"npz:{root / train},{root / test}", None, progress), name=name)
    if name not in OFFICIAL:
        raise DataError(f"{name} needs {train} and {test}: name their folder with --data-root")
    there = root is not None and data_sets.DATASETS[name].find(root) is not None
    return data_sets.load(name, root if there else None, progress)


def shrink(data: DataSet) -> DataSet:
    """Keep so few of the bundled images that everything is done in seconds; the classes stay balanced."""
    places = spread(data.test.labels, generator(0, "smoke"))[:SMALL_TEST]
    train = choose_private(data, SMALL_TRAIN, 0, public=0)
    return replace(data, name=SAMPLE, train=train, test=data.test.take(torch.sort(places).values))
