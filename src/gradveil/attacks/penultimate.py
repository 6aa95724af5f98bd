"""What enters a network's last layer, read off the gradients of that layer, as a term of a distance."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gradveil.attacks.distances import Distance, cosine
from gradveil.defences import Sizes
from gradveil.errors import SettingsError

LEAST = 1e-12
"""A bias gradient nearer to 0 than this divides nothing."""


@final
@dataclass(frozen=True)
class WithFeatures:
    """Add to a distance how far the features before the last layer are from those that the update shows.

    For one image, a row of the last weight's gradient, divided by the same entry of its bias's, is what entered the
    layer. The row is that of the lowest bias gradient: the image's own class. The mean squared difference counts
    `weight` times, as the feature term of `modern` in breaching (Geiping et al., 2022) does. Differs from it: a batch
    is compared by the same row, which mixes its images in both gradients alike.

    The last two parameters must be a linear layer's weight and bias; otherwise nothing is added.
    """

    distance: Distance = cosine
    weight: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.weight < float("inf"):
            raise SettingsError(f"features weighted {self.weight}: the weight must be above 0")

    def __call__(self, candidate: Tensor, released: Tensor, sizes: Sizes) -> tuple[Tensor, Tensor]:
        distances, slope = self.distance(candidate, released, sizes)
        classes = last_classes(sizes)
        if classes is None:
            return distances, slope
        apart, (weights, biases) = feature_gap(candidate, released, *classes)
        start = candidate.shape[1] - weights.shape[1] - biases.shape[1]
        slope = slope.clone()
        slope[:, start:] += self.weight * torch.cat([weights, biases], 1)
        return distances + self.weight * apart, slope


def last_classes(sizes: Sizes) -> tuple[int, int] | None:
    """Return the classes and the features of a linear last layer with a bias; None if there is none."""
    if len(sizes) < 2:
        return None
    (weight, entries), (bias, classes) = list(sizes.items())[-2:]
    linear = weight.endswith("weight") and bias.endswith("bias") and entries % classes == 0
    return (classes, entries // classes) if linear else None


def feature_gap(candidate: Tensor, released: Tensor, classes: int, features: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Measure the mean squared difference of the features; its slopes are at the last weight and bias, laid flat."""
    runs = torch.arange(len(candidate), device=candidate.device)
    split = classes * features
    ours, theirs = (rows[:, -split - classes :] for rows in (candidate, released))
    own = theirs[:, split:].argmin(1)
    weight, true_weight = (rows[:, :split].view(-1, classes, features)[runs, own] for rows in (ours, theirs))
    bias, true_bias = (rows[:, split:][runs, own][:, None] for rows in (ours, theirs))
    usable = (bias.abs() > LEAST) & (true_bias.abs() > LEAST)
    bias, true_bias = (torch.where(usable, one, torch.ones_like(one)) for one in (bias, true_bias))
    apart = torch.where(usable, weight / bias - true_weight / true_bias, torch.zeros_like(weight))
    weight_slope, bias_slope = ours.new_zeros(len(ours), classes, features), ours.new_zeros(len(ours), classes)
    weight_slope[runs, own] = 2 * apart / (features * bias)
    bias_slope[runs, own] = -(2 * apart * weight / (features * bias.square())).sum(1)
    return apart.square().mean(1), (weight_slope.flatten(1), bias_slope)
