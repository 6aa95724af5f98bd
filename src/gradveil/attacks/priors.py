"""What natural images look like, as penalties; each returns one number for each of T leading targets."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from gradveil.errors import SettingsError

Variation = Callable[[Tensor], Tensor]
"""A way to measure variation: takes T×B×C×H×W and returns its slope, of the same shape, without a graph."""
SMOOTHING = 1e-8


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference between neighbours down and across, averaged over each leading T of T×B×C×H×W."""
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().flatten(1).mean(1)
    across = (images[..., 1:] - images[..., :-1]).abs().flatten(1).mean(1)
    return down + across


def variation_slope(images: Tensor) -> Tensor:
    """Compute the slope of the total variation, T×B×C×H×W, without a graph; 0 between equal neighbours."""
    down = (images[..., 1:, :] - images[..., :-1, :]).sign_()
    across = (images[..., 1:] - images[..., :-1]).sign_()
    down /= down[0].numel()
    across /= across[0].numel()
    slope = torch.zeros_like(images)
    slope[..., 1:, :] += down
    slope[..., :-1, :] -= down
    slope[..., 1:] += across
    slope[..., :-1] -= across
    return slope


def opponent_variation(images: Tensor) -> Tensor:
    """Mean length of the step to the neighbours below and to the right, in the colours and in their differences.

    The differences (red − green, red − blue, green − blue) make a change of colour cost more than one of brightness:
    the double-opponent total variation of breaching's `modern` (exponents 2 and 1/2, after Åström and Schnörr, 2016).
    Beyond the last row and column pixels are 0, the mean colour. Grey images have no differences of colours.
    """
    if images.shape[-3] == 3:
        red, green, blue = (images[..., place : place + 1, :, :] for place in range(3))
        images = torch.cat([images, red - green, red - blue, green - blue], -3)
    padded = functional.pad(images, (0, 1, 0, 1))
    down = padded[..., 1:, :-1] - images
    across = padded[..., :-1, 1:] - images
    squares = (down.abs() + SMOOTHING).square() + (across.abs() + SMOOTHING).square()
    return squares.sqrt().flatten(1).mean(1)


def opponent_slope(images: Tensor) -> Tensor:
    """Compute the slope of the double-opponent total variation, T×B×C×H×W."""
    with torch.enable_grad():
        points = images.detach().requires_grad_()
        (slope,) = torch.autograd.grad(opponent_variation(points).sum(), points)
    return slope


@final
@dataclass(frozen=True)
class Priors:
    """Weights of the penalties.

    The weight of the total variation goes from `total_variation` to `last_variation` (the same, unless given) in equal
    ratios. With `relative` all weights are in units that make the slope of the total variation as steep, on average, as
    that of the distance, run by run and step by step: one weight then means the same for every model and phase.
    `variation` is the slope of the total variation. `energy` keeps images near the mean colour, `consistency` restarts
    near each other, and `batch_norm` the statistics that enter batch normalisations near the known ones. `passes` keeps
    the images of several passes over the same ones near each other, whatever their order: `images_per_pass` images, and
    the next pass.
    """

    total_variation: float = 1e-4
    last_variation: float | None = None
    relative: bool = False
    energy: float = 0.0
    consistency: float = 0.0
    batch_norm: float = 0.0
    passes: float = 0.0
    images_per_pass: int = 1
    variation: Variation = variation_slope

    def __post_init__(self) -> None:
        weights = (
            *(self.total_variation, self.last_variation or 0, self.energy),
            *(self.consistency, self.batch_norm, self.passes),
        )
        if not all(0 <= weight < math.inf for weight in weights):
            raise SettingsError(f"priors weighted {weights}: each must be 0 or more")
        if self.last_variation is not None and not (self.total_variation > 0 and self.last_variation > 0):
            raise SettingsError(
                f"a total variation that changes from {self.total_variation} to {self.last_variation}: "
                "both must be above 0"
            )

    @property
    def beyond_variation(self) -> bool:
        """Whether any penalty but the total variation has a weight."""
        return max(self.energy, self.consistency, self.batch_norm, self.passes) > 0

    def without_variation(self) -> "Priors":
        """Return the same penalties but for the total variation: for pictures that are not smooth."""
        return replace(self, total_variation=0.0, last_variation=None)

    def variation_weight(self, step: int, steps: int) -> float:
        """Return the weight of the total variation at a step, counted from 0, out of so many."""
        if self.last_variation is None:
            return self.total_variation
        return self.total_variation * math.exp(math.log(self.last_variation / self.total_variation) * step / steps)


def energy(images: Tensor) -> Tensor:
    """Mean square of normalised images: how far they are from the mean colour."""
    return images.flatten(1).square().mean(1)


def disagreement(images: Tensor, targets: Tensor) -> Tensor:
    """Mean squared distance of each run from the mean of the runs of its own target (Yin et al., 2021).

    Differs from GradInversion: the runs are averaged pixel by pixel, without registering them to one another first.
    """
    same = (targets[:, None] == targets[None, :]).to(images)
    centres = (same / same.sum(1, keepdim=True)) @ images.detach().flatten(1)
    return (images.flatten(1) - centres).square().mean(1)


def pass_gap(images: Tensor, labels: Tensor, per_pass: int) -> Tensor:
    """Measure how far passes are from using the same images, T, for T×U×C×H×W with labels T×U.

    Compared are the means of the images of each label, and of their squares: they do not depend on the order. A last
    pass that is not complete is left out.
    """
    passes = images.shape[1] // per_pass
    if passes < 2:
        return images.new_zeros(len(images))
    uses = passes * per_pass
    pixels = images[:, :uses].flatten(2).view(len(images), passes, per_pass, -1)
    known = labels[:, :uses].view(len(images), passes, per_pass)
    same = (known[..., None] == known[:, :1, None, :]).to(images)  # T×passes×N×N: this use and that of the first pass
    shares = same / same.sum(2, keepdim=True).clamp(min=1)
    means = shares.transpose(2, 3) @ torch.cat([pixels, pixels.square()], 3)
    return (means - means.mean(1, keepdim=True)).square().mean((1, 2, 3))
