"""Apply a policy once to stored images: a folder of image files, an .npz file or an idx file."""

import gzip
import io
import struct
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from gradveil.data.archives import read_file, read_plain
from gradveil.data.base import Progress
from gradveil.data.fashion_mnist import parse_idx
from gradveil.data.folder import MAX_FILE_BYTES, files_in
from gradveil.data.images import MAX_BYTES, EncodedImage, decode
from gradveil.data.npz import ArrayFile
from gradveil.errors import DataError, OutputError, printable
from gradveil.folders import claimed_folder
from gradveil.results import write_file
from gradveil.rng import generator
from gradveil.transforms import PolicySet, transform_array, transform_arrays


def transform_stored(
    source: Path, target: Path, policies: PolicySet, seed: int, overwrite: bool, progress: Progress
) -> dict[str, int]:
    """Write a transformed copy of a folder or a file, and return the counts of `images` and `other_files`.

    Images of a folder become PNG files. A file keeps its form.
    """
    if not source.exists():
        raise DataError(f"{source} does not exist: give a folder of images, an .npz file or an idx file")
    if source.is_dir():
        return transform_folder(source, target, policies, seed, overwrite, progress)
    return transform_file(source, target, policies, seed, overwrite, progress)


def transform_folder(
    source: Path, target: Path, policies: PolicySet, seed: int, overwrite: bool, progress: Progress
) -> dict[str, int]:
    """Transform every image at any depth; the draw for an image depends on the seed and its name."""
    if target.resolve().is_relative_to(source.resolve()):
        raise OutputError(f"{target} is within {source}: write the copy somewhere else")
    files = files_in(source)
    pictures = [path for path in files if path.suffix.lower() in Image.registered_extensions()]
    if not pictures:
        raise DataError(f"{source} has no images: give a folder with image files, at any depth")
    targets = plan_targets(source, target, pictures)
    with claimed_folder(target, "transforms", overwrite):
        for number, path in enumerate(pictures, start=1):
            image = decode(EncodedImage(printable(str(path)), partial(read_file, path, MAX_FILE_BYTES)), None, None)
            name = path.relative_to(source).as_posix()
            write_image(targets[path], transform_image(image, path, policies, seed, name), readers_of(path))
            progress("transforming images", number, len(pictures))
    return {"images": len(pictures), "other_files": len(files) - len(pictures)}


def plan_targets(source: Path, target: Path, pictures: list[Path]) -> dict[Path, Path]:
    """Name the PNG file of each image; refuse two images that would get one name."""
    planned: dict[Path, Path] = {}
    taken: dict[Path, Path] = {}
    for path in pictures:
        copy = (target / path.relative_to(source)).with_suffix(".png")
        if copy in taken:
            raise DataError(f"{taken[copy]} and {path} would both become {copy.name}: rename one of them")
        taken[copy] = path
        planned[path] = copy
    return planned


def transform_image(image: Image.Image, path: Path, policies: PolicySet, seed: int, name: str) -> Image.Image:
    if min(image.size) < 2:
        raise DataError(f"{path} is {image.width}×{image.height} pixels: both sides must be at least 2; remove it")
    return policies.transform_picture(image, generator(seed, "offline", name))


def readers_of(path: Path) -> int:
    """Return who can read a file: a copy can be read by the same."""
    return path.stat().st_mode & 0o777


def write_image(path: Path, image: Image.Image, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    image.save(content, "PNG")
    write_file(path, content.getvalue(), mode)


def transform_file(
    source: Path, target: Path, policies: PolicySet, seed: int, overwrite: bool, progress: Progress
) -> dict[str, int]:
    """Transform the images of one data file."""
    if target.exists() and (not overwrite or not target.is_file() or target.resolve() == source.resolve()):
        raise OutputError(f"{target} exists already: give the name of a new file, or pass --overwrite for another one")
    progress("transforming images", 0, 1)
    if source.suffix == ".npz":
        content, count = transform_npz(source, policies, seed)
    elif "idx3-ubyte" in source.name:
        content, count = transform_idx(source, policies, seed, target.suffix == ".gz")
    else:
        raise DataError(f"{source} is no folder, no .npz file and no idx3-ubyte file: give one of these")
    write_file(target, content, readers_of(source))
    progress("transforming images", 1, 1)
    return {"images": count}


def transform_npz(source: Path, policies: PolicySet, seed: int) -> tuple[bytes, int]:
    file = ArrayFile(source)
    arrays = {name: file.read(name) for name in file.members}
    if any(name.endswith("jpeg") for name in arrays):
        raise DataError(f"{source} holds JPEG bytes, which cannot be kept: give a folder of images instead")
    try:
        changed = transform_arrays(arrays, policies, seed)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **changed)
    return content.getvalue(), sum(len(array) for name, array in changed.items() if name.endswith("images"))


def transform_idx(source: Path, policies: PolicySet, seed: int, compressed: bool) -> tuple[bytes, int]:
    images = parse_idx(read_plain(source, MAX_BYTES), 3, source)
    changed = transform_array(images, policies, generator(seed, "offline", "images"))
    content = bytes([0, 0, 8, 3]) + struct.pack(">3I", *changed.shape) + changed.tobytes()
    return gzip.compress(content, mtime=0) if compressed else content, len(changed)
