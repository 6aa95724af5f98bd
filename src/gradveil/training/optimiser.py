"""The optimisers: SGD with Nesterov momentum, and Muon for the weight matrices if the settings ask for it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from gradveil.training.settings import TrainingSettings

ROUNDS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)
TINY = 1e-7


def make_optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.SGD:
    """Make the optimiser of the settings; all parameters share one learning rate."""
    common: dict[str, Any] = {
        "lr": settings.learning_rate,
        "momentum": settings.momentum,
        "weight_decay": settings.weight_decay,
        "nesterov": settings.momentum > 0,
    }
    if settings.muon == 0:
        return torch.optim.SGD(model.parameters(), **common)
    return Muon(model, settings.muon, **common)


class Muon(torch.optim.SGD):
    """Muon (Jordan et al., 2024) for kernels and hidden weight matrices, SGD for the other parameters.

    The step of a matrix is its momentum made nearly orthogonal, so that all directions are learnt equally fast. Its
    length is the learning rate times `scale`, whatever the gradient's, and it has no weight decay. The last matrix,
    the classifier, is left to SGD. torch's own Muon takes no kernels and computes in bfloat16, which is slow on most
    processors.
    """

    def __init__(self, model: nn.Module, scale: float, **common: Any) -> None:
        super().__init__(model.parameters(), **common)
        self.matrices = [parameter for parameter in model.parameters() if parameter.dim() in (2, 4)][:-1]
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
    found: Tensor = matrix.T if tall else matrix
    found = found / (found.norm() + TINY)
    first, third, fifth = QUINTIC
    for _ in range(ROUNDS):
        square = found @ found.T
        found = first * found + (third * square + fifth * square @ square) @ found
    scale = math.sqrt(max(1.0, matrix.shape[0] / matrix.shape[1]))
    return scale * (found.T if tall else found)
