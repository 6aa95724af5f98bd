"""CIFAR-10 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 32×32 in 10 classes."""

from functools import partial
from pathlib import Path

from gradveil.data import cifar
from gradveil.data.base import DataSet, Progress
from gradveil.data.download import RemoteFile

NAME = "cifar10"
PYTHON = cifar.Form(
    archive="cifar-10-python.tar.gz",
    folder="cifar-10-batches-py",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    class_names="batches.meta",
    parse=partial(cifar.parse_pickle, label="labels"),
    parse_names=partial(cifar.parse_pickled_names, key="label_names"),
)
BINARY = cifar.Form(
    archive="cifar-10-binary.tar.gz",
    folder="cifar-10-batches-bin",
    train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    test=("test_batch.bin",),
    class_names="batches.meta.txt",
    parse=partial(cifar.parse_binary, label_bytes=1),
    parse_names=cifar.parse_listed_names,
)
FORMS = (BINARY, PYTHON)
# The binary archive is the one to download: it needs no pickle.
FILES = (
    RemoteFile(
        name="cifar-10-binary.tar.gz",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        size=170_052_171,
        sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ),
)


def find(root: Path | None) -> Path | None:
    """Find the files on this machine."""
    found = cifar.find(NAME, FORMS, root)
    return found and found[1]


def load(root: Path | None, progress: Progress) -> DataSet:
    """Load CIFAR-10 from either official archive, packed or unpacked."""
    return cifar.load(NAME, FORMS, root, progress)
