"""The optimisers of a client, for real weights and, differentiably, for the attacker who repeats its steps."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from gradveil.gradients import Tensors
from gradveil.types import LocalTraining

ROUNDS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)
TINY = 1e-7
DECAYS = (0.9, 0.999)
EPSILON = 1e-8
LEAST = 1e-30
"""Keeps the slope of a square root finite at 0."""


def make_optimiser(model: nn.Module, local: LocalTraining) -> torch.optim.Optimizer:
    """Make the optimiser of real weights; all parameters share one learning rate."""
    if local.optimiser == "adam":
        return torch.optim.Adam(
            model.parameters(), lr=local.learning_rate, betas=DECAYS, eps=EPSILON, weight_decay=local.weight_decay
        )
    common: dict[str, Any] = {
        "lr": local.learning_rate,
        "momentum": local.momentum,
        "weight_decay": local.weight_decay,
        "nesterov": local.nesterov,
    }
    if local.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), **common)
    return Muon(model, local.muon_scale, **common)


def hidden_matrices(parameters: Sequence[tuple[str, Tensor]]) -> list[str]:
    """Name the kernels and hidden weight matrices; the last matrix, the classifier, is not among them."""
    return [name for name, parameter in parameters if parameter.dim() in (2, 4)][:-1]


class Muon(torch.optim.SGD):
    """Muon (Jordan et al., 2024) for kernels and hidden weight matrices, SGD for the other parameters.

    The step of a matrix is its momentum made nearly orthogonal, so that all directions are learnt equally fast. Its
    length is the learning rate times `scale`, whatever the gradient's, and it has no weight decay. The last matrix,
    the classifier, is left to SGD. torch's own Muon takes no kernels and computes in bfloat16, which is slow on most
    processors.
    """

    def __init__(self, model: nn.Module, scale: float, **common: Any) -> None:
        super().__init__(model.parameters(), **common)
        named = dict(model.named_parameters())
        self.matrices = [named[name] for name in hidden_matrices(list(named.items()))]
        self.scale = scale

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take one step from the gradients at hand; those of the matrices are used up."""
        group = self.param_groups[0]
        for parameter in self.matrices:
            if parameter.grad is None:
                continue
            momentum = self.state[parameter].setdefault("momentum_buffer", torch.zeros_like(parameter))
            momentum.mul_(group["momentum"]).add_(parameter.grad)
            direction = parameter.grad + group["momentum"] * momentum
            parameter.sub_(group["lr"] * self.scale * orthogonalise(direction.flatten(1)).view(parameter.shape))
            parameter.grad = None
        super().step()


def orthogonalise(matrix: Tensor) -> Tensor:
    """Bring the singular values of a matrix near one, and make up for it if it is taller than wide."""
    tall = matrix.shape[0] > matrix.shape[1]
    result: Tensor = matrix.T if tall else matrix
    result = result / ((result.square().sum() + LEAST).sqrt() + TINY)
    first, third, fifth = QUINTIC
    for _ in range(ROUNDS):
        square = result @ result.T
        result = first * result + (third * square + fifth * square @ square) @ result
    scale = math.sqrt(max(1.0, matrix.shape[0] / matrix.shape[1]))
    return scale * (result.T if tall else result)


class StepRule(ABC):
    """One optimiser, written without in-place changes: its steps can be differentiated."""

    @abstractmethod
    def step(self, parameters: Tensors, slopes: Tensors) -> Tensors:
        """Return the parameters after one step along the slopes."""


@final
class PlainRule(StepRule):
    """SGD with or without momentum and weight decay, and Muon, as torch and `Muon` take their steps."""

    def __init__(self, local: LocalTraining) -> None:
        self.local = local
        self.momenta: Tensors = {}

    def step(self, parameters: Tensors, slopes: Tensors) -> Tensors:
        matrices = hidden_matrices(list(parameters.items())) if self.local.optimiser == "muon" else []
        return {name: self.moved(name, value, slopes[name], name in matrices) for name, value in parameters.items()}

    def moved(self, name: str, value: Tensor, slope: Tensor, is_matrix: bool) -> Tensor:
        local = self.local
        if local.weight_decay and not is_matrix:
            slope = slope + local.weight_decay * value
        if local.momentum or is_matrix:
            momentum = slope if name not in self.momenta else local.momentum * self.momenta[name] + slope
            self.momenta[name] = momentum
            slope = slope + local.momentum * momentum if local.nesterov or is_matrix else momentum
        if is_matrix:
            slope = local.muon_scale * orthogonalise(slope.flatten(1)).view(slope.shape)
        return value - local.learning_rate * slope


@final
class AdamRule(StepRule):
    """Adam from a fresh state, as torch takes its steps."""

    def __init__(self, local: LocalTraining) -> None:
        self.local = local
        self.count = 0
        self.first: Tensors = {}
        self.second: Tensors = {}

    def step(self, parameters: Tensors, slopes: Tensors) -> Tensors:
        self.count += 1
        return {name: self.moved(name, value, slopes[name]) for name, value in parameters.items()}

    def moved(self, name: str, value: Tensor, slope: Tensor) -> Tensor:
        slope = slope + self.local.weight_decay * value
        first, second = self.first.get(name, 0 * slope), self.second.get(name, 0 * slope)
        self.first[name] = DECAYS[0] * first + (1 - DECAYS[0]) * slope
        self.second[name] = DECAYS[1] * second + (1 - DECAYS[1]) * slope.square()
        spread = (self.second[name] / (1 - DECAYS[1] ** self.count) + LEAST).sqrt() + EPSILON
        return value - self.local.learning_rate / (1 - DECAYS[0] ** self.count) * self.first[name] / spread


def make_step_rule(local: LocalTraining) -> StepRule:
    """Make the differentiable counterpart of `make_optimiser`."""
    return AdamRule(local) if local.optimiser == "adam" else PlainRule(local)
