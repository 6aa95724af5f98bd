"""Decode images of any kind into one uint8 tensor.

How images that are not 8-bit grey or RGB are converted:

- palette, CMYK, YCbCr and HSV images become RGB by Pillow's own conversion, without colour management;
- transparent pixels are laid over white;
- 16-bit grey keeps its upper eight bits; floating-point and Lab images are refused;
- an image with an orientation in its EXIF data is turned upright; of an animation the first frame is used;
- if all images are grey the result has one channel, otherwise grey ones are repeated over three.
"""

import functools
import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from gradveil.data.base import Progress, list_names
from gradveil.errors import DataError, SettingsError

MAX_PIXELS = 2**26
"""Larger images are refused before they are decoded: a file of a few kilobytes can claim to be a gigapixel."""
MAX_BYTES = 2**33
DEFAULT_SIZE = 64
USUAL_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "PPM")
# Pillow hands these to other programs or cannot decode them by itself.
EXCLUDED_FORMATS = {"EPS", "WMF", "MPEG", "BUFR", "GRIB", "HDF5"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EncodedImage:
    """One encoded image: its name for messages, and how to get its bytes."""

    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Decoding:
    """How images are brought to one shape.

    Without `size`, images of one size keep it and images of several sizes become 64×64. Without `channels`, see the top
    of this file.
    """

    size: int | None = None
    channels: int | None = None
    skip_broken: bool = False

    def __post_init__(self) -> None:
        if self.size is not None and not 8 <= self.size <= 1024:
            raise SettingsError(f"size={self.size} is out of range: give the side in pixels, from 8 to 1024")
        if self.channels not in (None, 1, 3):
            raise SettingsError(f"channels={self.channels} is not possible: give 1 for grey or 3 for colour")


@dataclass(frozen=True, eq=False)
class Decoded:
    """Images uint8 N×C×H×W, the positions of the sources they came from, and the names of those left out."""

    images: Tensor
    kept: Tensor
    skipped: tuple[str, ...]


class BrokenImageError(DataError):
    """An image that cannot be decoded."""


class MixedSizesError(Exception):
    """An image has another size than those before it."""


def decode_all(sources: Sequence[EncodedImage], decoding: Decoding, progress: Progress) -> Decoded:
    """Decode every image; a broken one is an error, or is skipped and reported with `skip_broken`."""
    try:
        return decode_to(sources, decoding, decoding.size, progress)
    except MixedSizesError:
        logger.info("images differ in size: resizing all to %d×%d", DEFAULT_SIZE, DEFAULT_SIZE)
        return decode_to(sources, decoding, DEFAULT_SIZE, progress)


def decode_to(sources: Sequence[EncodedImage], decoding: Decoding, size: int | None, progress: Progress) -> Decoded:
    """Decode to size×size; without a size, all images must have the size of the first."""
    pixels: NDArray[np.uint8] = np.empty((0, 3, 0, 0), dtype=np.uint8)
    kept: list[int] = []
    skipped: list[str] = []
    coloured = decoding.channels == 3
    for position, source in enumerate(sources):
        try:
            image = decode(source, size, decoding.channels)
        except BrokenImageError as error:
            if not decoding.skip_broken:
                raise
            logger.debug("%s", error)
            skipped.append(source.name)
            continue
        if not kept:
            pixels = allocate(len(sources), image)
        if pixels.shape[2:] != (image.height, image.width):
            raise MixedSizesError
        coloured |= image.mode == "RGB"
        pixels[len(kept)] = planes(image)
        kept.append(position)
        progress("decoding images", position + 1, len(sources))
    report(skipped, len(sources))
    images = torch.from_numpy(np.ascontiguousarray(pixels[: len(kept), : 3 if coloured else 1]))
    return Decoded(images, torch.tensor(kept, dtype=torch.int64), tuple(skipped))


def report(skipped: list[str], total: int) -> None:
    """Log how many images were skipped; if all were, fail."""
    if len(skipped) == total:
        raise DataError(f"none of the {total} images can be decoded: check the files")
    if skipped:
        logger.warning("left out %d of %d images that cannot be decoded: %s", len(skipped), total, list_names(skipped))


def allocate(count: int, image: Image.Image) -> NDArray[np.uint8]:
    if count * 3 * image.height * image.width > MAX_BYTES:
        raise DataError(
            f"{count:,} images of {image.width}×{image.height} do not fit into {MAX_BYTES / 2**30:.0f} GiB: "
            "choose a smaller size with size=N"
        )
    return np.empty((count, 3, image.height, image.width), dtype=np.uint8)


def planes(image: Image.Image) -> NDArray[np.uint8]:
    """Return 3×H×W of an RGB image, H×W of a grey one."""
    pixels: NDArray[np.uint8] = np.asarray(image)
    return pixels.transpose(2, 0, 1) if pixels.ndim == 3 else pixels


def decode(source: EncodedImage, size: int | None, channels: int | None) -> Image.Image:
    """Decode one image to 8-bit grey or RGB, with the given size and number of channels if these are not None."""
    try:
        content = source.read()
    except DataError as error:
        raise BrokenImageError(f"{error}; folder: leaves it out with the option skip-broken") from error
    try:
        with Image.open(io.BytesIO(content), formats=readable_formats()) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ValueError(f"{opened.width}×{opened.height} pixels, more than {MAX_PIXELS:,}")
            image = plain(upright(opened))
    except Exception as error:  # the decoders of many formats raise almost anything on a damaged file
        reason = "no format that can be read" if isinstance(error, UnidentifiedImageError) else error
        raise BrokenImageError(
            f"{source.name} cannot be decoded as an image ({reason}): replace or remove it; "
            "folder: and npz: leave broken images out with the option skip-broken"
        ) from error
    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)
    return image if channels is None else image.convert("L" if channels == 1 else "RGB")


@functools.cache
def readable_formats() -> tuple[str, ...]:
    """List the formats that Pillow decodes by itself; it tries them in this order, the usual ones first."""
    Image.init()
    unusual = [name for name in Image.ID if name not in {*USUAL_FORMATS, *EXCLUDED_FORMATS}]
    return (*USUAL_FORMATS, *unusual)


def upright(image: Image.Image) -> Image.Image:
    """Turn a photograph upright by its EXIF data."""
    image.load()
    if image.getexif().get(ExifTags.Base.Orientation, 1) == 1:
        return image
    return ImageOps.exif_transpose(image)


def plain(image: Image.Image) -> Image.Image:
    """Convert to mode L or RGB as described at the top of this file."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I"):
        return upper_bits(image)
    if image.mode == "F":
        raise ValueError("it has floating-point values, whose range is not known")
    grey = image.mode in ("1", "L", "LA", "La")
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = over_white(image)
    return image.convert("L" if grey else "RGB")


def over_white(image: Image.Image) -> Image.Image:
    """Lay a transparent image over white."""
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))


def upper_bits(image: Image.Image) -> Image.Image:
    """Keep the upper eight of sixteen bits."""
    values: NDArray[np.int64] = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError(f"its values go from {values.min()} to {values.max()}, beyond 16 bits")
    return Image.fromarray((values >> 8).astype(np.uint8))
