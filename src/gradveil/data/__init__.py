"""Data sets by name."""

from pathlib import Path

from gradveil.data import cifar10, cifar100, fashion_mnist, fashion_mnist_sample, folder, npz, tiny_imagenet
from gradveil.data.base import DataSet, ImageSet, Progress, channel_statistics, silent
from gradveil.data.choice import choose_private, choose_public
from gradveil.data.download import fetch
from gradveil.data.places import data_root
from gradveil.data.source import NamedSource, PathSource
from gradveil.errors import DataError, UnknownNameError

DATASETS: dict[str, NamedSource] = {
    "fashion-mnist-sample": NamedSource(
        "6,000 images of Fashion-MNIST that come with gradveil", fashion_mnist_sample.find, fashion_mnist_sample.load
    ),
    "fashion-mnist": NamedSource(
        "70,000 grey images of clothing, 28×28, 10 classes", fashion_mnist.find, fashion_mnist.load, fashion_mnist.FILES
    ),
    "cifar10": NamedSource("60,000 colour images, 32×32, 10 classes", cifar10.find, cifar10.load, cifar10.FILES),
    "cifar100": NamedSource("60,000 colour images, 32×32, 100 classes", cifar100.find, cifar100.load, cifar100.FILES),
    "tiny-imagenet": NamedSource(
        "110,000 colour images, 64×64, 200 classes", tiny_imagenet.find, tiny_imagenet.load, tiny_imagenet.FILES
    ),
}
FORMS: dict[str, PathSource] = {
    "folder": PathSource("PATH[,OPTION…]: your own images, one sub-folder for each class", folder.load),
    "npz": PathSource("TRAIN[,TEST][,OPTION…]: your own arrays, or JPEG bytes, in files of numpy", npz.load),
}


def load(name: str, root: Path | None = None, progress: Progress = silent) -> DataSet:
    """Load the data set called `name`; a `root` that is given is the only place to look for a named one."""
    form, colon, text = name.partition(":")
    if colon and form in FORMS:
        return FORMS[form].load(text, progress)
    return find_source(name).load(root, progress)


def find_source(name: str) -> NamedSource:
    """Look a name up in the registry."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, [*DATASETS, *(f"{form}:PATH" for form in FORMS)])
    return DATASETS[name]


def get(name: str, root: Path | None = None, progress: Progress = silent, mirror: str | None = None) -> Path:
    """Download the official files of a data set and check them; give the folder they are in."""
    if name.partition(":")[0] in FORMS:
        raise DataError(f"there is nothing to download for {name}: it is your own")
    files = find_source(name).files
    if not files:
        raise DataError(f"there is nothing to download for {name}: it comes with gradveil")
    place = (root or data_root()) / name
    for file in files:
        fetch(file, place, progress, mirror)
    return place


__all__ = [
    "DATASETS",
    "FORMS",
    "DataSet",
    "ImageSet",
    "Progress",
    "channel_statistics",
    "choose_private",
    "choose_public",
    "find_source",
    "get",
    "load",
]
