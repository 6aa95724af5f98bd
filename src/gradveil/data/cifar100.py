"""CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 32×32 in 100 classes."""

from functools import partial
from pathlib import Path

from gradveil.data import cifar
from gradveil.data.base import DataSet, Progress
from gradveil.data.download import RemoteFile

NAME = "cifar100"
PYTHON = cifar.Form(
    archive="cifar-100-python.tar.gz",
    folder="cifar-100-python",
    train=("train",),
    test=("test",),
    class_names="meta",
    parse=partial(cifar.parse_pickle, label="fine_labels"),
    parse_names=partial(cifar.parse_pickled_names, key="fine_label_names"),
)
BINARY = cifar.Form(
    archive="cifar-100-binary.tar.gz",
    folder="cifar-100-binary",
    train=("train.bin",),
    test=("test.bin",),
    class_names="fine_label_names.txt",
    parse=partial(cifar.parse_binary, label_bytes=2),
    parse_names=cifar.parse_listed_names,
)
FORMS = (BINARY, PYTHON)
# The binary archive is the one to download: it needs no pickle.
FILES = (
    RemoteFile(
        name="cifar-100-binary.tar.gz",
        url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        size=168_513_733,
        sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    ),
)


def find(root: Path | None) -> Path | None:
    """Find the files on this machine."""
    found = cifar.find(NAME, FORMS, root)
    return found and found[1]


def load(root: Path | None, progress: Progress) -> DataSet:
    """Load CIFAR-100 from either official archive, packed or unpacked."""
    return cifar.load(NAME, FORMS, root, progress)
