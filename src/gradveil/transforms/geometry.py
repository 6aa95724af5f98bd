"""Kernels that move pixels: shear, translate, rotate.

All take uint8 images N×C×H×W and one float64 magnitude for each image, and equal Pillow to the bit.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gradveil.transforms import pillow
from gradveil.transforms.grouping import by_magnitude

CACHED = 64


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


@lru_cache(CACHED)
def runs(side: int, magnitude: float) -> tuple[tuple[int, int, int], ...]:
    """Ask Pillow where the pixels of a row go: (target, source, length) of each unbroken run, nearly always one."""
    row = np.arange(1, side + 1, dtype=np.int32)[None]
    sources = np.asarray(pillow.translate_x(Image.fromarray(row), magnitude))[0] - 1
    steps = np.where(sources < 0, -side, sources - np.arange(side))
    cuts = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), side]
    return tuple((a, int(sources[a]), b - a) for a, b in pairwise(cuts) if sources[a] >= 0)


def rotate(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Rotate counter-clockwise by degrees, to the nearest pixel; grey comes in."""
    return by_magnitude(images, magnitudes, rotate_all)


def rotate_all(degrees: float, images: Tensor) -> Tensor:
    height, width = images.shape[2:]
    sources, inside = (tensor.to(images.device) for tensor in rotation(height, width, degrees))
    rows = images.flatten(2)
    turned = rows.gather(2, sources.expand(*rows.shape))
    return turned.bitwise_and_(inside).bitwise_or_(~inside & pillow.GREY).view_as(images)


@lru_cache(CACHED)
def rotation(height: int, width: int, degrees: float) -> tuple[Tensor, Tensor]:
    """Ask Pillow which pixel comes to each place, int64 H·W, and where one does at all, uint8 H·W of 255 or 0."""
    numbers = np.arange(1, height * width + 1, dtype=np.int32).reshape(height, width)
    sources = torch.from_numpy(np.array(Image.fromarray(numbers).rotate(degrees))).flatten().long() - 1
    return sources.clamp(min=0), (sources >= 0).to(torch.uint8) * 255


def shear_x(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each row in proportion to its height in the image; bicubic, black comes in."""
    return by_magnitude(images, magnitudes, partial(shear, False))


def shear_y(images: Tensor, magnitudes: Tensor) -> Tensor:
    """Shift each column in proportion to its place in the image; bicubic, black comes in."""
    return by_magnitude(images, magnitudes, partial(shear, True))


def shear(vertical: bool, magnitude: float, images: Tensor) -> Tensor:
    plan = shearing(images.shape[2], images.shape[3], magnitude, vertical).to(images.device)
    rows = images.flatten(2)
    shifted = rows.gather(2, plan.sources.expand(*rows.shape[:2], -1))
    done = cubic(shifted.to(torch.int16), plan.fractions, plan.stride)
    done = done.to(torch.int16).clamp_(0, 255).to(torch.uint8).bitwise_and_(plan.inside)
    return plan.crop(done, images.shape)


def cubic(values: Tensor, fractions: Tensor, stride: int) -> Tensor:
    """Interpolate between the second and third of four values that lie `stride` apart, in Pillow's order of operations.

    Integers first: the coefficients are whole numbers.
    """
    length = values.shape[2] - 3 * stride
    first, second, third, fourth = (values[..., k * stride : k * stride + length] for k in range(4))
    left = first - second
    p4 = fourth - third - left
    p3 = left - p4
    p2 = third - first
    done = p4.double().mul_(fractions)
    done.add_(p3.double()).mul_(fractions)
    done.add_(p2.double()).mul_(fractions)
    return done.add_(second.double())


@dataclass(frozen=True, eq=False)
class Shearing:
    """How to shear images of one size.

    `sources` picks pixels so that the four that a target needs lie `stride` apart: the lines of the image shifted
    by whole pixels, each three pixels longer than before. `fractions` and `inside` (255 or 0) are of the targets.
    """

    sources: Tensor
    fractions: Tensor
    inside: Tensor
    stride: int
    width: int

    def to(self, device: torch.device) -> "Shearing":
        tensors = (tensor.to(device) for tensor in (self.sources, self.fractions, self.inside))
        return Shearing(*tensors, self.stride, self.width)

    def crop(self, rows: Tensor, shape: torch.Size) -> Tensor:
        """Cut the lines back to their old length."""
        if rows.shape[2] < shape[2] * self.width:
            rows = torch.nn.functional.pad(rows, (0, shape[2] * self.width - rows.shape[2]))
        return rows.view(*shape[:3], self.width)[..., : shape[3]].contiguous()


@lru_cache(CACHED)
def shearing(height: int, width: int, magnitude: float, vertical: bool) -> Shearing:
    """Work out where Pillow looks for each target, in double precision and in its order of operations."""
    y, x = np.mgrid[:height, :width].astype(np.float64) + 0.5
    along, across, side = (y, x, height) if vertical else (x, y, width)
    places = (magnitude * across + along) if vertical else (along + magnitude * across)
    inside = (places >= 0) & (places < side)
    places = places - 0.5
    axis = 0 if vertical else 1
    shifts = (np.floor(places) - (along - 0.5)).min(axis=axis, keepdims=True)
    fractions = places - (along - 0.5 + shifts)
    lines = np.arange(-1, side + 2)
    reached = np.clip((lines[:, None] if vertical else lines) + shifts, 0, side - 1).astype(np.int64)
    sources = reached * width + np.arange(width) if vertical else np.arange(height)[:, None] * width + reached
    if not vertical:
        fractions, inside = (np.pad(table, ((0, 0), (0, 3))) for table in (fractions, inside))
    stride = width if vertical else 1
    length = sources.size - 3 * stride
    return Shearing(
        torch.from_numpy(sources.reshape(-1).copy()),
        torch.from_numpy(fractions.reshape(-1)[:length].copy()),
        torch.from_numpy(inside.reshape(-1)[:length].astype(np.uint8) * 255),
        stride,
        width if vertical else width + 3,
    )
