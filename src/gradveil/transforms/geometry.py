"""Kernels that move pixels: shear, translate, rotate.

All take uint8 images N×C×H×W and one float64 magnitude for each image, and equal Pillow to the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from gradveil.transforms import pillow
from gradveil.transforms.point import to_bytes

KEPT = 64  # tables of that many sizes and magnitudes are kept
CHUNK = 2**17  # values at a time in double precision, so that they stay in the inner cache


def by_magnitude(images: Tensor, magnitudes: Tensor, kernel: Callable[[float, Tensor], Tensor]) -> Tensor:
    """Apply a kernel that takes one magnitude to each run of images that share it; fastest if there are few runs."""
    runs = [(value, len(list(run))) for value, run in groupby(magnitudes.tolist())]
    if len(runs) == 1:
        return kernel(runs[0][0], images)
    parts = torch.split(images, [length for _, length in runs])
    return torch.cat([kernel(value, part) for (value, _), part in zip(runs, parts, strict=True)])


def translate_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Move by a share of the width; black comes in."""
    return by_magnitude(images, magnitudes, partial(translate, 3))


def translate_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Move by a share of the height; black comes in."""
    return by_magnitude(images, magnitudes, partial(translate, 2))


def translate(dimension: int, magnitude: float, images: Tensor) -> Tensor:
    """Copy every run of pixels to its new place."""
    moved = torch.zeros_like(images)
    for target, source, length in runs(images.shape[dimension], magnitude):
        moved.narrow(dimension, target, length).copy_(images.narrow(dimension, source, length))
    return moved


@lru_cache(KEPT)
def runs(side: int, magnitude: float) -> tuple[tuple[int, int, int], ...]:
    """Find with Pillow where the pixels of a row go: (target, source, length) of each unbroken run, usually one."""
    row = np.arange(1, side + 1, dtype=np.int32)[None]
    sources = np.asarray(pillow.translate_x(Image.fromarray(row), magnitude))[0] - 1
    shifts = np.where(sources < 0, -side, sources - np.arange(side))
    cuts = [0, *(np.flatnonzero(np.diff(shifts)) + 1).tolist(), side]
    return tuple((start, int(sources[start]), end - start) for start, end in pairwise(cuts) if sources[start] >= 0)


def rotate(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Rotate counter-clockwise by degrees, to the nearest pixel; grey comes in."""
    return by_magnitude(images, magnitudes, rotate_by)


def rotate_by(degrees: float, images: Tensor) -> Tensor:
    sources, inside = (table.to(images.device) for table in rotation(images.shape[2], images.shape[3], degrees))
    rows = images.flatten(2)
    turned = rows.gather(2, sources.expand(*rows.shape))
    return turned.bitwise_and_(inside).bitwise_or_(~inside & pillow.GREY).view_as(images)


@lru_cache(KEPT)
@torch.inference_mode(False)  # a table made in inference mode cannot be used with gradients
def rotation(height: int, width: int, degrees: float) -> tuple[Tensor, Tensor]:
    """Find with Pillow the source of each pixel, int64 H·W, and whether it has one, uint8 H·W of 255 or 0."""
    numbers = np.arange(1, height * width + 1, dtype=np.int32).reshape(height, width)
    sources = torch.from_numpy(np.array(Image.fromarray(numbers).rotate(degrees))).flatten().long() - 1
    return sources.clamp(min=0), (sources >= 0).to(torch.uint8) * 255


def shear_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each row in proportion to its place; bicubic, black comes in."""
    return by_magnitude(images, magnitudes, partial(shear, False))


def shear_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each column in proportion to its place; bicubic, black comes in."""
    return by_magnitude(images, magnitudes, partial(shear, True))


def shear(vertical: bool, magnitude: float, images: Tensor) -> Tensor:
    plan = shearing(images.shape[2], images.shape[3], magnitude, vertical).to(images.device)
    parts = torch.split(images, max(1, CHUNK // images[0].numel()))
    # Two buffers for all parts: allocating them each time would cost as much as the arithmetic.
    buffers = torch.empty(2, *parts[0].shape[:2], len(plan.fractions), dtype=torch.float64, device=images.device)
    return torch.cat([shear_part(plan, part, buffers[:, : len(part)]) for part in parts])


def shear_part(plan: "Shearing", images: Tensor, buffers: Tensor) -> Tensor:
    first, second, third, fourth = plan.taps(images.to(torch.int16))
    # The coefficients are computed as whole numbers; the rest follows Pillow's order of operations.
    left = first - second
    p4 = (fourth - third).sub_(left)
    done, spare = buffers
    done.copy_(p4).mul_(plan.fractions)
    for coefficient in (left.sub_(p4), third - first):
        done.add_(spare.copy_(coefficient)).mul_(plan.fractions)
    done.add_(spare.copy_(second))
    return plan.crop(to_bytes(done).bitwise_and_(plan.inside), images.shape)


@dataclass(frozen=True, eq=False)
class Shearing:
    """How to shear images of one size.

    Each line of the image is first shifted by whole pixels and made three pixels longer: `sources`. Then the four
    pixels that a target lies between are `stride` apart. `fractions` says where between the second and the third,
    `inside` (255 or 0) whether it is in the image; both as long as the lengthened image, which is `width` wide.
    """

    sources: Tensor
    fractions: Tensor
    inside: Tensor
    stride: int
    width: int

    def to(self, device: torch.device) -> "Shearing":
        sources, fractions, inside = (table.to(device) for table in (self.sources, self.fractions, self.inside))
        return Shearing(sources, fractions, inside, self.stride, self.width)

    def taps(self, images: Tensor) -> list[Tensor]:
        """Return the four neighbours of every target, each N×C×L."""
        rows = images.flatten(2)
        shifted = rows.gather(2, self.sources.expand(*rows.shape[:2], -1))
        return [shifted.narrow(2, tap * self.stride, len(self.fractions)) for tap in range(4)]

    def crop(self, rows: Tensor, shape: torch.Size) -> Tensor:
        """Cut the lines back to their old length."""
        return rows.view(*shape[:3], self.width)[..., : shape[3]].contiguous()


@lru_cache(KEPT)
@torch.inference_mode(False)
def shearing(height: int, width: int, magnitude: float, vertical: bool) -> Shearing:
    """Compute which pixels Pillow reads for each target, in double precision and in its order of operations."""
    lines, side = (width, height) if vertical else (height, width)
    line, position = np.arange(lines)[:, None], np.arange(side)
    places = (position + 0.5) + magnitude * (line + 0.5)
    inside = (places >= 0) & (places < side)
    # Rounding can move a place to the next pixel: the fraction is then 1, which selects the third pixel, as it should.
    shifts = (np.floor(places - 0.5) - position).min(axis=1, keepdims=True)
    fractions = (places - 0.5) - (position + shifts)
    reached = np.clip(np.arange(-1, side + 2) + shifts, 0, side - 1).astype(np.int64)
    if vertical:
        return make_shearing(reached.T * width + line.T, fractions.T, inside.T, width, width)
    spare = ((0, 0), (0, 3))
    sources = np.append(line * width + reached, np.zeros(3, dtype=np.int64))
    return make_shearing(sources, np.pad(fractions, spare), np.pad(inside, spare), 1, width + 3)


def make_shearing(
    sources: NDArray[np.int64], fractions: NDArray[np.float64], inside: NDArray[np.bool_], stride: int, width: int
) -> Shearing:
    return Shearing(
        torch.from_numpy(sources.flatten()),
        torch.from_numpy(fractions.flatten()),
        torch.from_numpy(inside.flatten()).to(torch.uint8) * 255,
        stride,
        width,
    )
