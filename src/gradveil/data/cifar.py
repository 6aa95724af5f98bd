"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images of 32×32 in 10 or 100 classes.

Each has two official forms: the python archive and the binary archive.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gradveil.data import pickles
from gradveil.data.archives import Container, open_container
from gradveil.data.base import DataSet, ImageSet, Progress, assemble, require_counts
from gradveil.data.download import RemoteFile
from gradveil.data.locations import list_folders, make_missing_error
from gradveil.errors import DataError

SIDE = 32
PIXELS = 3 * SIDE * SIDE
LIMIT = 250_000_000
"""The archives hold 185 MB; more is refused."""

SHA256_DIGITS = 64
logger = logging.getLogger(__name__)

Labelled = tuple[NDArray[np.uint8], NDArray[np.int64]]


@dataclass(frozen=True)
class Form:
    """One official archive: its name, the folder in it, its files, and how they are parsed."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    class_names: str
    parse: Callable[[bytes, str], Labelled]
    parse_names: Callable[[bytes, str], tuple[str, ...]]
    known: Mapping[str, str] = field(default_factory=dict)
    """The published SHA-256 or MD5 of the archive and of files in it, by name."""


@dataclass(frozen=True)
class Cifar:
    """One of the two data sets, in the order in which its forms are searched."""

    name: str
    forms: tuple[Form, ...]
    files: tuple[RemoteFile, ...]
    content: str | None = None
    """The SHA-256 of all images, labels and class names, if it is known; see `hash_content`."""

    def find(self, root: Path | None) -> Path | None:
        """Find the files on this machine."""
        located = self.locate(root)
        return None if located is None else located[1]

    def load(self, root: Path | None, progress: Progress) -> DataSet:
        """Load the official 50,000 training and 10,000 test images from either archive, packed or unpacked."""
        located = self.locate(root)
        if located is None:
            archives = " or ".join(form.archive for form in self.forms)
            raise make_missing_error(self.name, archives, list_folders(self.name, root))
        form, path = located
        progress(f"reading {path.name}", 0, 1)
        dataset = require_counts(read(self.name, form, path), 50_000, 10_000)
        self.check(dataset, form, path)
        progress(f"reading {path.name}", 1, 1)
        return dataset

    def check(self, dataset: DataSet, form: Form, path: Path) -> None:
        """Refuse images, labels or names that are not the published ones; the content decides if its hash is known."""
        if self.content is None:
            check_files(form, path)
        elif hash_content(dataset) != self.content:
            raise damaged(path, self.name)

    def locate(self, root: Path | None) -> tuple[Form, Path] | None:
        """Find the first form that is there; unpacked files come first, because they are read faster."""
        for folder in list_folders(self.name, root):
            for form in self.forms:
                for path in (folder / form.folder, folder, folder / form.archive):
                    if path.is_file() or (path / form.train[0]).is_file():
                        return form, path
        return None


def read(name: str, form: Form, path: Path) -> DataSet:
    """Read an archive or an unpacked folder of any number of images."""
    container = open_container(path, LIMIT)
    prefix = "" if path.is_dir() else f"{form.folder}/"
    train, test = (read_split(container, form, path, prefix, files) for files in (form.train, form.test))
    class_names = form.parse_names(container.read(prefix + form.class_names), f"{path}: {form.class_names}")
    return assemble(name, train, test, class_names)


def hash_content(dataset: DataSet) -> str:
    """Return the SHA-256 of pixels and labels, one byte each, of the training and the test split, then of the names."""
    found = hashlib.sha256()
    for split in (dataset.train, dataset.test):
        found.update(split.images.numpy().tobytes())
        found.update(split.labels.to(torch.uint8).numpy().tobytes())
    found.update("\n".join(dataset.class_names).encode())
    return found.hexdigest()


def check_files(form: Form, path: Path) -> None:
    """Refuse an archive or unpacked files that are not the published ones; say so if no hash of them is known."""
    files = [path] if path.is_file() else [path / name for name in (*form.train, *form.test, form.class_names)]
    if not any(file.name in form.known for file in files):
        logger.warning("%s cannot be checked: nobody has published its hashes; %s can be", path, form.archive)
    for file in files:
        if file.name in form.known and file.is_file():
            known = form.known[file.name]
            with file.open("rb") as stream:
                kind = "sha256" if len(known) == SHA256_DIGITS else "md5"
                if hashlib.file_digest(stream, kind).hexdigest() != known:
                    raise damaged(file, form.archive)


def damaged(path: Path, name: str) -> DataError:
    return DataError(
        f"{path} does not hold what was published as {name} (its hash differs): it is damaged or was changed; get it "
        "again, or load your own images with npz:PATH or folder:PATH"
    )


def read_split(container: Container, form: Form, path: Path, prefix: str, files: Sequence[str]) -> ImageSet:
    parts = [form.parse(container.read(prefix + file), f"{path}: {file}") for file in files]
    images = np.concatenate([pixels for pixels, _ in parts]).reshape(-1, 3, SIDE, SIDE)
    return ImageSet(torch.from_numpy(images), torch.from_numpy(np.concatenate([labels for _, labels in parts])))


def parse_pickle(content: bytes, place: str, *, label: str) -> Labelled:
    """Take images and labels from one file of the python form; `label` is the key of the labels."""
    record = pickles.read_record(content, place)
    images = pickles.byte_array(record.get("data"), place)
    labels = pickles.whole_numbers(record.get(label), place)
    if images.shape != (len(labels), PIXELS):
        raise DataError(
            f"{place} holds data of shape {images.shape} for {len(labels)} labels: "
            f"it must be {len(labels)}×{PIXELS}; get the official file again"
        )
    return images, labels


def parse_pickled_names(content: bytes, place: str, *, key: str) -> tuple[str, ...]:
    """Take the class names from the meta file of the python form."""
    return pickles.names(pickles.read_record(content, place).get(key), place)


def parse_binary(content: bytes, place: str, *, label_bytes: int) -> Labelled:
    """Take images and labels from one file of the binary form; the last of `label_bytes` is the label."""
    row = label_bytes + PIXELS
    if not content or len(content) % row:
        raise DataError(f"{place} has {len(content):,} bytes, no multiple of {row:,}: it is cut off; get it again")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, row)
    return rows[:, label_bytes:], rows[:, label_bytes - 1].astype(np.int64)


def parse_listed_names(content: bytes, place: str) -> tuple[str, ...]:  # noqa: ARG001
    """Take the class names from the text file of the binary form."""
    return tuple(content.decode("latin1").split())


BINARY10 = RemoteFile(
    name="cifar-10-binary.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    size=170_052_171,
    sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
# The binary archives come first and are the ones to download: they need no pickle.
CIFAR10 = Cifar(
    "cifar10",
    (
        Form(
            archive="cifar-10-binary.tar.gz",
            folder="cifar-10-batches-bin",
            train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
            test=("test_batch.bin",),
            class_names="batches.meta.txt",
            parse=partial(parse_binary, label_bytes=1),
            parse_names=parse_listed_names,
            known={BINARY10.name: BINARY10.sha256},
        ),
        Form(
            archive="cifar-10-python.tar.gz",
            folder="cifar-10-batches-py",
            train=tuple(f"data_batch_{number}" for number in range(1, 6)),
            test=("test_batch",),
            class_names="batches.meta",
            parse=partial(parse_pickle, label="labels"),
            parse_names=partial(parse_pickled_names, key="label_names"),
            known={
                "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                "test_batch": "40351d587109b95175f43aff81a1287e",
                "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
            },
        ),
    ),
    (BINARY10,),
)
CIFAR100 = Cifar(
    "cifar100",
    (
        Form(
            archive="cifar-100-binary.tar.gz",
            folder="cifar-100-binary",
            train=("train.bin",),
            test=("test.bin",),
            class_names="fine_label_names.txt",
            parse=partial(parse_binary, label_bytes=2),
            parse_names=parse_listed_names,
        ),
        Form(
            archive="cifar-100-python.tar.gz",
            folder="cifar-100-python",
            train=("train",),
            test=("test",),
            class_names="meta",
            parse=partial(parse_pickle, label="fine_labels"),
            parse_names=partial(parse_pickled_names, key="fine_label_names"),
        ),
    ),
    (
        RemoteFile(
            name="cifar-100-binary.tar.gz",
            url="https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            size=168_513_733,
            sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
    content="c4f1295a51f89a2b5b8cadedd30b5fc3d48cfcacf19dd9eec8755817a494ea4d",
)
