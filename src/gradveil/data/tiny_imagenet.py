"""Tiny-ImageNet-200 (Le and Yang, 2015): 100,000 training images of 64×64 in 200 classes.

The 10,000 validation images are the test split, because the official test images come without labels.
"""

from functools import partial
from pathlib import Path, PurePosixPath

import torch

from gradveil.data.archives import Container, open_container
from gradveil.data.base import DataSet, ImageSet, Progress, assemble, require_counts
from gradveil.data.download import RemoteFile
from gradveil.data.folder import natural_key
from gradveil.data.images import Decoding, EncodedImage, decode_all
from gradveil.data.locations import list_folders, make_missing_error
from gradveil.errors import DataError

NAME = "tiny-imagenet"
FOLDER = "tiny-imagenet-200"
ARCHIVE = f"{FOLDER}.zip"
SIDE = 64
LIMIT = 600_000_000
"""The archive holds about 290 MB; more than twice as much is refused."""
FILES = (
    RemoteFile(
        name=ARCHIVE,
        url=f"http://cs231n.stanford.edu/{ARCHIVE}",
        size=248_100_043,
        sha256="6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
    ),
)

Labelled = list[tuple[str, int]]


def find(root: Path | None) -> Path | None:
    """Find the unpacked tree or the zip."""
    for folder in list_folders(NAME, root):
        for path in (folder / FOLDER, folder, folder / ARCHIVE):
            if path.is_file() or (path / "wnids.txt").is_file():
                return path
    return None


def load(root: Path | None, progress: Progress) -> DataSet:
    """Load the official 100,000 training and 10,000 validation images."""
    path = find(root)
    if path is None:
        raise make_missing_error(NAME, f"{FOLDER} or {ARCHIVE}", list_folders(NAME, root))
    return require_counts(read(path, progress), 100_000, 10_000)


def read(path: Path, progress: Progress) -> DataSet:
    """Read a tree or zip of any number of images; classes are sorted by their WordNet ids."""
    container = open_container(path, LIMIT)
    prefix = "" if path.is_dir() else f"{FOLDER}/"
    ids = sorted(lines(container, f"{prefix}wnids.txt"))
    labels = {identifier: label for label, identifier in enumerate(ids)}
    train = list_training(container, f"{prefix}train/", labels)
    test = list_validation(container, f"{prefix}val/", labels)
    sources = [EncodedImage(f"{path}: {name}", partial(container.read, name)) for name, _ in train + test]
    images = decode_all(sources, Decoding(size=SIDE, channels=3), progress).images
    truth = torch.tensor([label for _, label in train + test])
    splits = (slice(None, len(train)), slice(len(train), None))
    train_set, test_set = (ImageSet(images[part], truth[part]) for part in splits)
    return assemble(NAME, train_set, test_set, read_class_names(container, f"{prefix}words.txt", ids))


def lines(container: Container, name: str) -> list[str]:
    return [line for line in container.read(name).decode(errors="replace").splitlines() if line.strip()]


def list_training(container: Container, prefix: str, labels: dict[str, int]) -> Labelled:
    """List `<id>/images/<id>_<n>.JPEG` by class and number."""
    images: Labelled = []
    for name in container.names():
        parts = PurePosixPath(name.removeprefix(prefix)).parts
        if name.startswith(prefix) and name.endswith(".JPEG") and parts[0] in labels:
            images.append((name, labels[parts[0]]))
    return sorted(images, key=lambda pair: (pair[1], natural_key(pair[0])))


def list_validation(container: Container, prefix: str, labels: dict[str, int]) -> Labelled:
    """List the validation images in the order of their annotations: file, id, and a box that is not used."""
    place = f"{prefix}val_annotations.txt"
    images: Labelled = []
    for number, line in enumerate(lines(container, place), start=1):
        name, _, rest = line.partition("\t")
        identifier = rest.partition("\t")[0]
        if identifier not in labels or "/" in name:
            raise DataError(f"{place} line {number} is '{line[:60]}': it must be a file, a tab and an id of wnids.txt")
        images.append((f"{prefix}images/{name}", labels[identifier]))
    return images


def read_class_names(container: Container, name: str, ids: list[str]) -> tuple[str, ...]:
    """Read the words of each id."""
    words = dict(line.split("\t", 1) for line in lines(container, name) if "\t" in line)
    return tuple(words.get(identifier, identifier) for identifier in ids)
