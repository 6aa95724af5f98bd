"""Data sets by name: how each is found on this machine, loaded and downloaded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.data import fashion_mnist, fashion_mnist_sample, folder, npz, tiny_imagenet
from gradveil.data.base import DataSet, Progress, silent
from gradveil.data.cifar import CIFAR10, CIFAR100
from gradveil.data.conversion import from_torch
from gradveil.data.download import RemoteFile, fetch
from gradveil.data.locations import data_root
from gradveil.data.specification import is_text
from gradveil.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class NamedSource:
    """A data set that has a name: how to find it on this machine, how to load it, and what to download for it."""

    description: str
    find: Callable[[Path | None], Path | None]
    load: Callable[[Path | None, Progress], DataSet]
    files: tuple[RemoteFile, ...] = ()


@dataclass(frozen=True)
class PathSource:
    """A data set of the user's own; `load` takes the text after the colon."""

    description: str
    load: Callable[[str, Progress], DataSet]


DATASETS: dict[str, NamedSource] = {
    "fashion-mnist-sample": NamedSource(
        "6,000 images of Fashion-MNIST that come with gradveil", fashion_mnist_sample.find, fashion_mnist_sample.load
    ),
    "fashion-mnist": NamedSource(
        "70,000 grey images of clothing, 28×28, 10 classes", fashion_mnist.find, fashion_mnist.load, fashion_mnist.FILES
    ),
    "cifar10": NamedSource("60,000 colour images, 32×32, 10 classes", CIFAR10.find, CIFAR10.load, CIFAR10.files),
    "cifar100": NamedSource("60,000 colour images, 32×32, 100 classes", CIFAR100.find, CIFAR100.load, CIFAR100.files),
    "tiny-imagenet": NamedSource(
        "110,000 colour images, 64×64, 200 classes", tiny_imagenet.find, tiny_imagenet.load, tiny_imagenet.FILES
    ),
}
"""The data sets that have a name."""
FORMS: dict[str, PathSource] = {
    "folder": PathSource("PATH[,OPTION…]: your own images, one sub-folder for each class", folder.load),
    "npz": PathSource("TRAIN[,TEST][,OPTION…]: your own arrays, or JPEG bytes, in files of numpy", npz.load),
}
"""The forms of data sets that are read from a path."""


def load(name: str, root: Path | None = None, progress: Progress = silent) -> DataSet:
    """Load the data set called `name`; if `root` is given, a named data set is searched only there."""
    form, colon, text = name.partition(":")
    if not is_text(name):
        raise DataError(f"the data set '{name}' has a name that is not UTF-8: rename the file or folder")
    try:
        if colon and form in FORMS:
            return FORMS[form].load(text, progress)
        return find_source(name).load(root, progress)
    except OSError as error:
        raise DataError(
            f"{error.filename or name} cannot be read: {error.strerror or error}; choose another"
        ) from error


def find_data(data: Any, test: Any = None) -> DataSet:
    """Take a data set of ours as it is; load one by name; read a torch Dataset or DataLoader, with its `test` part."""
    if test is not None:
        return from_torch(data, test)
    if isinstance(data, DataSet):
        return data
    return load(data) if isinstance(data, str) else from_torch(data)


def find_source(name: str) -> NamedSource:
    """Look a name up in the registry."""
    if name not in DATASETS:
        suggest_form(name)
        raise UnknownNameError("data set", name, [*DATASETS, *(f"{form}:PATH" for form in FORMS)])
    return DATASETS[name]


def suggest_form(name: str) -> None:
    """Refuse the bare path of a folder or file with the form that it needs."""
    if name and Path(name).is_dir():
        raise DataError(f"unknown data set '{name}', which is a folder: write folder:{name}")
    if name.endswith(".npz") and Path(name).is_file():
        raise DataError(f"unknown data set '{name}', which is a file: write npz:{name}")


def get(name: str, root: Path | None = None, progress: Progress = silent, mirror: str | None = None) -> Path:
    """Download the official files of a data set, check them, and return their folder."""
    if name.partition(":")[0] in FORMS:
        raise DataError(f"there is nothing to download for {name}: it is your own")
    files = find_source(name).files
    if not files:
        raise DataError(f"there is nothing to download for {name}: it comes with gradveil")
    target = (root or data_root()) / name
    for file in files:
        fetch(file, target, progress, mirror)
    return target
