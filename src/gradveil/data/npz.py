"""`npz:TRAIN[,TEST]`: arrays of images and labels in files of numpy; each path may be a glob for several files.

A file holds `labels` with either `images` or `jpeg` and `offsets` (N+1 positions in the JPEG bytes), and optionally
`class_names`. A file may also hold both splits, as `train_images`, `train_labels`, `test_images`, `test_labels`.
"""

import glob
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradveil.data.archives import archive_errors
from gradveil.data.base import DataSet, ImageSet, Progress, assemble
from gradveil.data.folder import natural_key
from gradveil.data.images import MAX_BYTES, EncodedImage, decode_all
from gradveil.data.specification import DECODING, SPLIT, Specification, parse_specification, to_path
from gradveil.data.splits import split_images
from gradveil.errors import DataError, SettingsError
from gradveil.files import require_regular

Array = NDArray[Any]
UNSUSPICIOUS = 2**26
EXPANSION = 100
"""A file of images that unpacks to more than `UNSUSPICIOUS` bytes and so many times its size is made to fill memory."""
UNREADABLE = (ValueError, TypeError, SyntaxError, TokenError, OverflowError, RecursionError, MemoryError)
"""What numpy raises on a header that is no header."""


@final
class ArrayFile:
    """The arrays of one file, read one by one; their headers are checked before anything is allocated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with archive_errors(path):
            size = require_regular(path)
            self.archive = zipfile.ZipFile(path)
        self.members = {info.filename.removesuffix(".npy"): info for info in self.archive.infolist()}
        unpacked = sum(info.file_size for info in self.archive.infolist())
        if unpacked > max(UNSUSPICIOUS, EXPANSION * size):
            raise DataError(
                f"{path} holds {size:,} bytes that unpack to {unpacked:,}: more than {EXPANSION} times as much is "
                "refused; write the file without compression if it is what you want"
            )

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def read(self, key: str) -> Array:
        """Read an array of plain values; one of Python objects, a pickle, is refused."""
        if key not in self.members:
            raise DataError(
                f"{self.path} has the arrays {', '.join(self.members)} but not '{key}': it needs labels with images, "
                "or with jpeg and offsets, or train_images, train_labels, test_images and test_labels"
            )
        with archive_errors(self.path):
            try:
                self.check_header(self.members[key])
                with self.archive.open(self.members[key]) as stream:
                    array: Array = np.lib.format.read_array(stream, allow_pickle=False)
            except UNREADABLE as error:
                raise DataError(f"{self.path} has a damaged array '{key}' ({error}): write the file again") from error
        return array

    def check_header(self, member: zipfile.ZipInfo) -> None:
        """Refuse an array whose header promises more than the file holds, or too much for memory."""
        with self.archive.open(member) as stream:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError("its format is not version 1.0 of numpy's")
            shape, _, kind = np.lib.format.read_array_header_1_0(stream)
            size = math.prod(shape) * kind.itemsize
            if kind.hasobject:
                raise ValueError("it holds Python objects")
            if size > MAX_BYTES or stream.tell() + size != member.file_size:
                raise ValueError(f"its header says {size:,} bytes of values, the file holds {member.file_size:,}")


@dataclass(frozen=True, eq=False)
class Content:
    """What one or several files hold: images as a tensor or, still encoded, as sources."""

    images: Tensor | None
    sources: Sequence[EncodedImage]
    labels: Tensor
    class_names: tuple[str, ...] | None


def load(text: str, progress: Progress) -> DataSet:
    """Load the files that `text` names, with its options."""
    specification = parse_specification(text)
    train, test = read_splits(specification, progress)
    labels = torch.cat([content.labels for content in train + test])
    images, kept, skipped = join_images(train + test, specification, progress)
    if test:
        specification.refuse(SPLIT, "the files have a test split")
        in_train = kept < sum(len(content.labels) for content in train)
    else:
        in_train = specification.split().draw(labels[kept])
    train_set, test_set = split_images(ImageSet(images, labels[kept]), in_train)
    return assemble(f"npz:{text}", train_set, test_set, join_class_names(train + test, labels), skipped)


def read_splits(specification: Specification, progress: Progress) -> tuple[list[Content], list[Content]]:
    """Read the files of the training and of the test split; the latter may be none."""
    if not 1 <= len(specification.paths) <= 2:
        raise SettingsError(f"npz: got {len(specification.paths)} paths: write npz:TRAIN or npz:TRAIN,TEST")
    paths = [find_files(pattern) for pattern in specification.paths]
    files = [[ArrayFile(path) for path in matched] for matched in paths]
    if len(files) == 1 and len(files[0]) == 1 and "train_images" in files[0][0]:
        return [read_content(files[0][0], "train_")], [read_content(files[0][0], "test_")]
    twice = set(paths[0]) & set(paths[-1]) if len(paths) == 2 else set()
    if twice:
        raise DataError(f"{min(twice)} is in both the training and the test split: name it once")
    contents = []
    flat = [file for matched in files for file in matched]
    for number, file in enumerate(flat, start=1):
        contents.append(read_content(file, ""))
        progress("reading files", number, len(flat))
    return contents[: len(files[0])], contents[len(files[0]) :]


def find_files(pattern: str) -> list[Path]:
    """Expand a glob to the files it matches, `part2` before `part10`."""
    expanded = to_path(pattern)
    matches = [expanded] if expanded.is_file() else map(Path, glob.glob(str(expanded)))  # noqa: PTH207
    paths = [path for path in matches if path.is_file()]
    if not paths:
        raise DataError(f"no file matches '{pattern}': write npz:TRAIN or npz:TRAIN,TEST, with * for several files")
    return sorted(paths, key=lambda path: natural_key(str(path)))


def read_content(file: ArrayFile, prefix: str) -> Content:
    """Read images and labels from the arrays whose names start with `prefix`."""
    labels = as_labels(file.read(f"{prefix}labels"), file.path)
    class_names = as_class_names(file.read("class_names"), file.path) if "class_names" in file else None
    if f"{prefix}jpeg" in file:
        sources = as_sources(file.read(f"{prefix}jpeg"), file.read(f"{prefix}offsets"), file.path)
        content = Content(None, sources, labels, class_names)
    else:
        content = Content(as_images(file.read(f"{prefix}images"), file.path), (), labels, class_names)
    count = len(content.sources) if content.images is None else len(content.images)
    if count != len(labels):
        raise DataError(f"{file.path} has {count:,} images and {len(labels):,} labels: there must be one for each")
    return content


def as_labels(values: Array, path: Path) -> Tensor:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise DataError(f"{path} has labels {values.dtype} of shape {values.shape}: they must be N whole numbers")
    return torch.from_numpy(values.astype(np.int64))


def as_images(values: Array, path: Path) -> Tensor:
    """Bring N×H×W, N×H×W×C or N×C×H×W to the last form; three at the end count as channels."""
    if values.dtype != np.uint8:
        raise DataError(f"{path} has images of {values.dtype}: they must be uint8, from 0 to 255")
    images = torch.from_numpy(values)
    if images.dim() == 3:
        return images.unsqueeze(1)
    if images.dim() == 4 and images.shape[3] in (1, 3):
        return images.permute(0, 3, 1, 2).contiguous()
    if images.dim() == 4 and images.shape[1] in (1, 3):
        return images
    raise DataError(
        f"{path} has images of shape {values.shape}: they must be N×H×W, N×H×W×C or N×C×H×W with 1 or 3 channels"
    )


def as_sources(jpeg: Array, offsets: Array, path: Path) -> list[EncodedImage]:
    """Cut the bytes of all JPEG files at the offsets."""
    if jpeg.dtype != np.uint8 or jpeg.ndim != 1 or offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        raise DataError(
            f"{path} has jpeg {jpeg.dtype} and offsets {offsets.dtype}: they must be bytes and N+1 positions"
        )
    bounds = offsets.tolist()
    if len(bounds) < 2 or bounds[0] < 0 or bounds[-1] > len(jpeg) or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise DataError(f"{path} has offsets that do not rise from 0 to at most the {len(jpeg):,} bytes of jpeg")
    return [
        EncodedImage(f"{path}: image {number}", jpeg[start:end].tobytes)
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


def as_class_names(values: Array, path: Path) -> tuple[str, ...]:
    if values.ndim != 1 or values.dtype.kind not in "US":
        raise DataError(f"{path} has class_names {values.dtype} of shape {values.shape}: they must be a row of texts")
    return tuple(name.decode(errors="replace") if isinstance(name, bytes) else name for name in values.tolist())


def join_images(
    contents: Sequence[Content], specification: Specification, progress: Progress
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Return the images of all files, their positions, and the names of skipped ones."""
    arrays = [content.images for content in contents if content.images is not None]
    if not arrays:
        sources = [source for content in contents for source in content.sources]
        decoded = decode_all(sources, specification.decoding(), progress)
        return decoded.images, decoded.kept, decoded.skipped
    specification.refuse(DECODING, "the files hold arrays, which are taken as they are")
    shapes = {tuple(images.shape[1:]) for images in arrays}
    if len(arrays) < len(contents) or len(shapes) > 1:
        raise DataError(
            f"the files hold images of the shapes {sorted(shapes)}{' and JPEG bytes' * (len(arrays) < len(contents))}: "
            "all files of one data set must agree"
        )
    images = torch.cat(arrays)
    return images, torch.arange(len(images)), ()


def join_class_names(contents: Sequence[Content], labels: Tensor) -> tuple[str, ...]:
    """Take the class names, on which all files must agree; without any, number the classes."""
    named = {content.class_names for content in contents if content.class_names is not None}
    if len(named) > 1:
        raise DataError("the files have different class_names: all files of one data set must agree")
    if named:
        return named.pop()
    highest = int(labels.max()) if len(labels) else 0
    if highest >= len(labels):
        raise DataError(f"label {highest} is above the number of images, {len(labels)}: number the classes from 0")
    return tuple(str(label) for label in range(highest + 1))
