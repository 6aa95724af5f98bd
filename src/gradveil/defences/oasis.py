"""OASIS: an image and its transforms in one batch (Jeter et al., ICDCS 2024, arXiv:2311.13739)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Tensor, nn

from gradveil.defences.base import Compute, Defence, Hook
from gradveil.errors import SettingsError
from gradveil.gradients import Tensors
from gradveil.losses import Loss
from gradveil.types import Batch

View = Callable[[Tensor], Tensor]
"""Transforms pictures, …×C×H×W, differentiably."""
NAME = "oasis"
DEFAULT = ("major",)


@dataclass(frozen=True, repr=False)
class Oasis(Defence):
    """Take the gradient of every image together with fixed transforms of it: the mean over all of them.

    `kinds` name the transforms, as Jeter et al. do: `major` rotations (90°, 180°, 270°), `minor` ones, `shear`,
    `hflip`, `vflip`. Differs from Jeter et al.: theirs is a defence against servers that tamper with the model, and
    here it stands before attackers who only look on. The angles of minor rotations (30°, 45°, 60°) and the factors of
    horizontal shears (0.3, 0.6, 0.9) are ours.
    """

    kinds: tuple[str, ...] = DEFAULT

    hooks: ClassVar[tuple[Hook, ...]] = ("compute",)
    used: ClassVar[str] = "the transforms: its candidate is fed with them, so there is one unknown image"

    def __post_init__(self) -> None:
        if not self.kinds or len(set(self.kinds)) < len(self.kinds) or not set(self.kinds) <= VIEWS.keys():
            raise SettingsError(
                f"{self}: write oasis, or oasis:KINDS with some of {', '.join(VIEWS)}, each once, joined with +"
            )

    def __str__(self) -> str:
        return NAME if self.kinds == DEFAULT else f"{NAME}:{'+'.join(self.kinds)}"

    def views(self) -> tuple[View, ...]:
        """List the transforms."""
        return tuple(view for kind in self.kinds for view in VIEWS[kind])

    def known_views(self, pixels: Tensor) -> list[Tensor]:
        return [pixels, *(view(pixels) for view in self.views())]

    def compute(self, inner: Compute) -> Compute:
        def enlarged(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
            pixels = self.known_views(batch.pixels())
            return inner(model, loss, Batch(torch.cat(pixels), batch.labels.repeat(len(pixels))), generator)

        return enlarged


def read_oasis(text: str) -> Oasis:
    """Make the defence of what stands after its name."""
    return Oasis(tuple(text.split("+"))) if text else Oasis()


def turn(quarters: int) -> View:
    """Rotate by quarters of a turn; the image has to be square."""

    def view(pixels: Tensor) -> Tensor:
        height, width = pixels.shape[-2:]
        if quarters % 2 and height != width:
            raise SettingsError(f"images of {height}×{width} cannot be turned by 90°: choose other kinds of {NAME}")
        return torch.rot90(pixels, quarters, (-2, -1))

    return view


def mirror(dimension: int) -> View:
    return lambda pixels: pixels.flip(dimension)


def rotate(degrees: float) -> View:
    """Rotate about the middle, anticlockwise, black corners."""
    angle = math.radians(degrees)
    return warp(((math.cos(angle), -math.sin(angle)), (math.sin(angle), math.cos(angle))))


def shear(factor: float) -> View:
    """Shift every row by `factor` times its distance from the middle, black corners."""
    return warp(((1.0, factor), (0.0, 1.0)))


Matrix = tuple[tuple[float, float], tuple[float, float]]


def warp(matrix: Matrix) -> View:
    """Take each pixel, by row and column from the middle, from where `matrix` leads; the nearest one counts."""

    def view(pixels: Tensor) -> Tensor:
        places, inside = (part.to(pixels.device) for part in find_sources(*pixels.shape[-2:], matrix))
        return (pixels.flatten(-2)[..., places] * inside).view(pixels.shape)

    return view


@cache
def find_sources(height: int, width: int, matrix: Matrix) -> tuple[Tensor, Tensor]:
    """Find for each pixel the place of its source, and whether it lies within the picture."""
    middle = torch.tensor([(height - 1) / 2, (width - 1) / 2])
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    sources = (torch.stack([rows, columns], -1) - middle) @ torch.tensor(matrix) + middle
    nearest = sources.round().long()
    inside = ((nearest >= 0) & (nearest < torch.tensor([height, width]))).all(-1)
    clamped = nearest.clamp(min=0).minimum(torch.tensor([height - 1, width - 1]))
    return (clamped[..., 0] * width + clamped[..., 1]).flatten(), inside.flatten()


VIEWS: dict[str, tuple[View, ...]] = {
    "major": tuple(turn(quarters) for quarters in (1, 2, 3)),
    "minor": tuple(rotate(degrees) for degrees in (30, 45, 60)),
    "shear": tuple(shear(factor) for factor in (0.3, 0.6, 0.9)),
    "hflip": (mirror(-1),),
    "vflip": (mirror(-2),),
}
