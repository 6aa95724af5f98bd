"""The gradient of a linear layer's weight as a mixture of what entered the layer, one part for each image."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.types import LocalTraining, Task, Update

ROUNDING = 3e-6
"""Singular values below this share of the largest are those of float32's rounding."""


def count_images(weight: Tensor, noise: float = 0.0) -> int:
    """Read the number of images off the gradient of a linear layer's weight, outputs×inputs: its rank.

    It is a lower bound if images or their activations repeat, or if there are as many images as outputs or inputs.
    The slopes of a softmax sum to zero, so the last layer shows at most one image fewer than there are classes.
    Singular values below `noise` do not count.
    """
    values = torch.linalg.svdvals(weight.double())
    return int((values > max(noise, ROUNDING * float(values[0]))).sum()) if float(values[0]) > 0 else 0


def change_noise(weight: Tensor, local: LocalTraining) -> float:
    """Return how large the singular values are that rounding leaves in a weight change; a gradient has none of it.

    A change is the difference of two weights, of which each is rounded to its own size.
    """
    if not local.takes_steps:
        return 0.0
    rounding = torch.finfo(weight.dtype).eps * float(weight.detach().square().mean().sqrt())
    return rounding * (math.sqrt(weight.shape[0]) + math.sqrt(weight.shape[1]))


def count_at(task: Task, update: Update, layer: str) -> int:
    """Read the number of images off an update at one linear layer of the model."""
    parameter = task.model.get_submodule(layer).get_parameter("weight")
    return count_images(update.tensors[f"{layer}.weight"], change_noise(parameter, update.local))


@dataclass(frozen=True, eq=False)
class Solved:
    """The inputs of the layer, images×inputs, and the slopes at its outputs, outputs×images."""

    inputs: Tensor
    slopes: Tensor


@dataclass(frozen=True, eq=False)
class Mixture:
    """The gradient of the weight as L, outputs×rank, times R, rank×inputs, and that of the bias, outputs.

    With a column of Δ and X for each image the first is Δ·Xᵀ. Its columns are Δ = L·Q and Xᵀ = Q⁻¹·R for some Q.
    """

    left: Tensor
    right: Tensor
    bias: Tensor

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor, rank: int) -> "Mixture":
        left, values, right = torch.linalg.svd(weight.double().cpu(), full_matrices=False)
        return cls(left[:, :rank], values[:rank, None] * right[:rank], bias.double().cpu())

    @property
    def rank(self) -> int:
        return self.left.shape[1]

    def solve(self, directions: Tensor) -> Solved:
        """Give the directions, columns of Q, their lengths, with Δ·1 = bias gradient, and solve for the inputs."""
        slopes = self.left @ directions
        scales = torch.linalg.lstsq(slopes, self.bias[:, None]).solution[:, 0]
        return Solved(torch.linalg.solve(directions * scales, self.right), slopes * scales)
