"""`folder:PATH`: images in one sub-folder for each class.

If PATH has `train` and `test` (or `val`) folders, these hold the class folders; otherwise the test split is drawn.
"""

import os
import re
from functools import partial
from pathlib import Path

import torch

from gradveil.data.archives import read_file
from gradveil.data.base import DataSet, ImageSet, Progress, assemble, list_names
from gradveil.data.images import EncodedImage, decode_all
from gradveil.data.specification import SPLIT, Specification, is_text, parse_specification, to_path
from gradveil.data.splits import split_images
from gradveil.errors import DataError, printable

MAX_FILE_BYTES = 2**28
TEST_FOLDERS = ("test", "val", "validation")

Labelled = list[tuple[Path, int]]


def load(text: str, progress: Progress) -> DataSet:
    """Load the folder that `text` names, with its options."""
    specification = parse_specification(text)
    path = ",".join(specification.paths)
    folder = to_path(path)
    if not path or not folder.is_dir():
        raise DataError(
            f"'{path}' is no folder: write folder:PATH with a folder that has one sub-folder for each class"
        )
    test_folder = next((folder / name for name in TEST_FOLDERS if (folder / name).is_dir()), None)
    if test_folder is None or not (folder / "train").is_dir():
        class_names = class_folders(folder)
        return load_files(text, specification, list_images(folder, class_names), None, class_names, progress)
    specification.refuse(SPLIT, f"{test_folder} is the test split")
    class_names = class_folders(folder / "train")
    unknown = sorted(set(class_folders(test_folder)) - set(class_names))
    if unknown:
        raise DataError(f"{test_folder} has classes that are not in {folder / 'train'}: {list_names(unknown)}")
    train, test = list_images(folder / "train", class_names), list_images(test_folder, class_names)
    return load_files(text, specification, train, test, class_names, progress)


def load_files(
    text: str,
    specification: Specification,
    train: Labelled,
    test: Labelled | None,
    class_names: list[str],
    progress: Progress,
) -> DataSet:
    """Decode all files together, so that both splits get the same shape, and split them."""
    files = train + (test or [])
    if not files:
        raise DataError(f"'{text}' has no folder with images: write folder:PATH with one sub-folder for each class")
    sources = [EncodedImage(printable(str(path)), partial(read_file, path, MAX_FILE_BYTES)) for path, _ in files]
    decoded = decode_all(sources, specification.decoding(), progress)
    labels = torch.tensor([label for _, label in files])[decoded.kept]
    in_train = specification.split().draw(labels) if test is None else decoded.kept < len(train)
    train_set, test_set = split_images(ImageSet(decoded.images, labels), in_train)
    return assemble(f"folder:{text}", train_set, test_set, tuple(class_names), decoded.skipped)


def class_folders(folder: Path) -> list[str]:
    """List the classes: the sub-folders whose names do not start with a dot, sorted."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    odd = [name for name in names if not is_text(name)]
    if odd:
        raise DataError(f"the class folder '{odd[0]}' in {folder} has a name that is not UTF-8: rename it")
    whole = folder.resolve()
    loops = [name for name in names if whole.is_relative_to((folder / name).resolve())]
    if loops:
        raise DataError(f"{folder / loops[0]} is a link to a folder that holds the data set itself: remove the link")
    return names


def list_images(folder: Path, class_names: list[str]) -> Labelled:
    """List the files of each class, at any depth, in the same order on every machine."""
    return [(path, label) for label, name in enumerate(class_names) for path in files_in(folder / name)]


def files_in(folder: Path) -> list[Path]:
    """List the files whose names do not start with a dot; `2.png` comes before `10.png`."""
    paths = [Path(place) / name for place, _, names in os.walk(folder) for name in names if not name.startswith(".")]
    return sorted(paths, key=lambda path: natural_key(path.as_posix()))


def natural_key(text: str) -> list[tuple[int, str]]:
    """Sort numbers within a text by their value.

    >>> sorted(["a10", "a9"], key=natural_key)
    ['a9', 'a10']
    """
    # Numbers are compared by their length, then digit by digit: Python refuses to read very long ones.
    parts = enumerate(re.split(r"([0-9]+)", text))
    return [(len(part.lstrip("0")), part.lstrip("0")) if place % 2 else (-1, part) for place, part in parts]
