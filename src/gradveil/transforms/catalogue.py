"""The operations, and the catalogues that number them; `v1` is frozen so that published policies keep their meaning."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from torch import Tensor

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.transforms import blending, geometry, point, surrogates

LEVELS = 10

Kernel = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Operation:
    """One kind of change to an image.

    `kernel` takes uint8 images N×C×H×W and one float64 magnitude for each image, with its sign, and returns new images;
    no image may depend on another. Level 0 has the magnitude `low`, level 9 `high`; at the magnitude `neutral` the
    operation changes nothing. `signed` operations draw + or − for each image.

    `surrogate`, of the same form on float images in [0, 1], has the gradient of the differentiable view; without one
    the gradient passes straight through.

    The rest is for speed. `pointwise`: a pixel's new value depends on its old one and the magnitude alone. `table`:
    it depends on the histogram of the channel; this function turns histograms, int64 N×C×256, into the new values of
    all 256 old ones, uint8 N×C×256. Consecutive operations of these two kinds are computed together. `sorts`: images
    of one magnitude are computed together.
    """

    name: str
    kernel: Kernel
    low: float = 0.0
    high: float = 0.0
    neutral: float | None = None
    signed: bool = False
    surrogate: Kernel | None = None
    pointwise: bool = False
    table: Callable[[Tensor], Tensor] | None = None
    sorts: bool = False

    def __post_init__(self) -> None:
        if not self.name.isalpha():
            raise SettingsError(f"an operation called '{self.name}': its name must be made of letters only")

    @property
    def has_levels(self) -> bool:
        return self.low != self.high

    @property
    def maps_values(self) -> bool:
        return self.pointwise or self.table is not None

    def magnitude(self, level: int) -> float:
        """Return the magnitude at `level`, without a sign."""
        return float(np.linspace(self.low, self.high, LEVELS)[level])


@dataclass(frozen=True)
class Transform:
    """An operation at a level from 0 to 9.

    >>> print(CATALOGUE[3])
    translateX:9
    """

    operation: Operation
    level: int

    def __post_init__(self) -> None:
        if not 0 <= self.level < LEVELS:
            raise SettingsError(f"level {self.level} of {self.operation.name}: give a level from 0 to {LEVELS - 1}")

    def __str__(self) -> str:
        return f"{self.operation.name}:{self.level}"

    @cached_property
    def magnitude(self) -> float:
        return self.operation.magnitude(self.level)

    @property
    def is_identity(self) -> bool:
        return self.magnitude == self.operation.neutral

    @property
    def draws_sign(self) -> bool:
        return self.operation.signed and not self.is_identity

    @property
    def function(self) -> str:
        """Name what is computed; entries that do the same have the same name.

        >>> CATALOGUE[22].function, CATALOGUE[39].function
        ('equalize', 'identity')
        """
        if self.is_identity:
            return "identity"
        return str(self) if self.operation.has_levels else self.operation.name


@dataclass(frozen=True)
class Catalogue:
    """A numbered list of transforms under a name."""

    name: str
    transforms: tuple[Transform, ...]

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise SettingsError(f"a catalogue called '{self.name}': use letters, digits and _ only")

    def __len__(self) -> int:
        return len(self.transforms)

    def __getitem__(self, index: int) -> Transform:
        return self.transforms[index]

    def extend(self, name: str, *transforms: Transform) -> "Catalogue":
        """Make a new catalogue with `transforms` numbered after the ones that are here."""
        return Catalogue(name, self.transforms + transforms)


OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        Operation("shearX", geometry.shear_x, 0, 0.3, 0, True, surrogates.shear_x, sorts=True),
        Operation("shearY", geometry.shear_y, 0, 0.3, 0, True, surrogates.shear_y, sorts=True),
        Operation("translateX", geometry.translate_x, 0, 150 / 331, 0, True, geometry.translate_x, sorts=True),
        Operation("translateY", geometry.translate_y, 0, 150 / 331, 0, True, geometry.translate_y, sorts=True),
        Operation("rotate", geometry.rotate, 0, 30, 0, False, surrogates.rotate),
        Operation("color", blending.color, 0, 0.5, 0, True, surrogates.color),
        Operation("contrast", blending.contrast, 0, 0.5, 0, True, surrogates.contrast),
        Operation("sharpness", blending.sharpness, 0, 0.5, 0, True, surrogates.sharpness),
        Operation("brightness", point.brightness, 0, 0.5, 0, True, surrogates.brightness, pointwise=True),
        Operation("posterize", point.posterize, 8, 4, 8, pointwise=True),
        Operation("solarize", point.solarize, 256, 0, 256, False, surrogates.solarize, pointwise=True),
        Operation(
            "autocontrast", point.autocontrast, surrogate=surrogates.autocontrast, table=point.autocontrast_table
        ),
        Operation("equalize", point.equalize, table=point.equalize_table),
        Operation("invert", point.invert, surrogate=surrogates.invert, pointwise=True),
    )
}
"""The operations of the catalogue by name, with their ranges."""
ENHANCEMENTS = ("color", "contrast", "sharpness", "brightness")

ENTRIES = """
    invert 7        contrast 6      rotate 2        translateX 9    sharpness 1
    sharpness 3     shearY 2        translateY 2    autocontrast 5  equalize 2
    shearY 5        posterize 5     color 3         brightness 5    sharpness 9
    brightness 9    equalize 5      equalize 1      contrast 7      sharpness 5
    color 5         translateX 5    equalize 7      autocontrast 8  translateY 3
    sharpness 6     brightness 6    color 8         solarize 0      invert 0
    equalize 0      autocontrast 0  equalize 8      equalize 4      color 5
    equalize 5      autocontrast 4  solarize 4      brightness 3    color 0
    solarize 1      autocontrast 0  translateY 3    translateY 3    autocontrast 1
    solarize 1      equalize 5      invert 0        translateY 3    autocontrast 1
"""


def make_catalogue(name: str, operations: dict[str, Operation]) -> Catalogue:
    """Number the 50 entries, in reading order."""
    words = ENTRIES.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return Catalogue(name, tuple(Transform(operations[operation], int(level)) for operation, level in pairs))


WIDER = {name: replace(OPERATIONS[name], high=0.9) for name in ENHANCEMENTS}

CATALOGUE = make_catalogue("v1", OPERATIONS)
"""The 50 transformations, frozen: published policies keep their meaning."""
CATALOGUES: dict[str, Catalogue] = {"v1": CATALOGUE, "wide": make_catalogue("wide", OPERATIONS | WIDER)}
"""The catalogues by name; `wide` has AutoAugment's range."""


def find_catalogue(name: str) -> Catalogue:
    """Look a catalogue up by its name."""
    if name not in CATALOGUES:
        raise UnknownNameError("catalogue", name, CATALOGUES)
    return CATALOGUES[name]
