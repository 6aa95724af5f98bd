"""Fashion-MNIST (Xiao et al., 2017; MIT licence): 60,000 training and 10,000 test images of 28×28 in 10 classes."""

import hashlib
import math
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gradveil.data.archives import read_plain
from gradveil.data.base import DataSet, ImageSet, Progress, assemble
from gradveil.data.download import RemoteFile
from gradveil.data.fashion_mnist_sample import CLASS_NAMES
from gradveil.data.locations import list_folders, make_missing_error
from gradveil.errors import DataError

NAME = "fashion-mnist"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts the four files, which it compressed again."""
LIMIT = 60_000 * 28 * 28 + 16
URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
SPLITS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
# Hashes of the content without gzip: MNIST has files of the same names and sizes.
CONTENT_SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
FILES = tuple(
    RemoteFile(name, URL + name, size, sha256)
    for name, size, sha256 in (
        ("train-images-idx3-ubyte.gz", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1-ubyte.gz", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3-ubyte.gz", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1-ubyte.gz", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )
)


def find(root: Path | None) -> Path | None:
    """Find the folder that holds all four files, compressed or not."""
    for folder in list_folders(NAME, root, DEBIAN):
        if all(find_file(folder, file) for pair in SPLITS.values() for file in pair):
            return folder
    return None


def find_file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def load(root: Path | None, progress: Progress) -> DataSet:
    """Load the official images and check their content."""
    folder = find(root)
    if folder is None:
        raise make_missing_error(NAME, "complete set of idx files", list_folders(NAME, root, DEBIAN))
    progress("reading fashion-mnist", 0, 1)
    dataset = read(folder, CONTENT_SHA256)
    progress("reading fashion-mnist", 1, 1)
    return dataset


def read(folder: Path, expected: Mapping[str, str]) -> DataSet:
    """Read the four idx files in a folder; `expected` has the SHA-256 of the content of those to be checked."""
    train, test = (
        ImageSet(
            torch.from_numpy(read_idx(folder, images, 3, expected)).unsqueeze(1),
            torch.from_numpy(read_idx(folder, labels, 1, expected)).long(),
        )
        for images, labels in SPLITS.values()
    )
    return assemble(NAME, train, test, CLASS_NAMES)


def read_idx(folder: Path, name: str, dimensions: int, expected: Mapping[str, str]) -> NDArray[np.uint8]:
    path = find_file(folder, name) or folder / name
    content = read_plain(path, LIMIT)
    array = parse_idx(content, dimensions, path)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != expected.get(name, sha256):
        raise DataError(
            f"{path} is whole but is not the file of Fashion-MNIST (MNIST has the same names): its content has "
            f"SHA-256 {sha256[:12]}…, not {expected[name][:12]}…; get it with 'gradveil data get {NAME}'"
        )
    return array


def parse_idx(content: bytes, dimensions: int, path: Path) -> NDArray[np.uint8]:
    """Parse an idx file of bytes: a magic number, the sizes as big-endian 32 bits, then the values."""
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes([0, 0, 8, dimensions]):
        raise DataError(f"{path} does not start like an idx file of bytes in {dimensions} dimensions: get it again")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) != header + math.prod(shape):
        raise DataError(
            f"{path} has {len(content) - header:,} values, its header says {math.prod(shape):,}: "
            "it is damaged or cut off; get it again"
        )
    return np.frombuffer(bytearray(content), dtype=np.uint8, offset=header).reshape(shape)
