"""CENSOR: release a random direction at right angles to the gradient (Zhang et al., NDSS 2025, arXiv:2501.15718)."""

import copy
import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import vmap

from gradveil.defences.base import Compute, Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import KnownRelease, NormsOnly, Released
from gradveil.defences.noise import normal
from gradveil.gradients import Tensors, loss_of_parameters, parameters_of
from gradveil.losses import Loss
from gradveil.types import Batch


@dataclass(frozen=True, repr=False)
class Censor(Parametrised):
    """Draw `trials` gradients, each tensor orthogonal to the true one and as long; release that of the least loss.

    The loss is that of the batch after a step of `rate` along the drawn gradient, in evaluation mode. Differs from
    Zhang et al.: a true gradient is never released. Their algorithm keeps it where no trial lowers the loss, which with
    `fallback` 1 this one does too. Differs from their code: the projection there divides by the gradient's norm instead
    of its square, so what it releases is orthogonal only to gradients of norm 1; and it defends the first ten epochs
    alone.
    """

    trials: int = 20
    rate: float = 1e-4
    fallback: int = 0

    name: ClassVar[str] = "censor"
    hooks: ClassVar[tuple[Hook, ...]] = ("compute",)
    hides_directions: ClassVar[bool] = True
    used: ClassVar[str] = "the norm of every tensor, which is the true one; the directions say next to nothing"
    allowed: ClassVar[str] = (
        "write censor or censor:trials=K:rate=R:fallback=F with 1 ≤ K ≤ 1000, a step R above 0, and F = 1 to release "
        "the true gradient where no trial lowers the loss, as the authors do, else 0"
    )

    def is_allowed(self) -> bool:
        return 1 <= self.trials <= 1000 and 0 < self.rate < math.inf and self.fallback in (0, 1)

    def compute(self, inner: Compute) -> Compute:
        def censored(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
            true = inner(model, loss, batch, generator)
            drawn = {name: draw_orthogonal(tensor, self.trials, generator) for name, tensor in true.items()}
            if len(batch) == 0:
                return {name: tensor[0] for name, tensor in drawn.items()}
            reached = losses_after(model, loss, batch, drawn, self.rate)
            best = int(reached.argmin())
            if self.fallback and not reached[best] < loss_before(model, loss, batch):
                return true
            return {name: tensor[best] for name, tensor in drawn.items()}

        return censored

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        return known if released.participants > 1 else known.then(NormsOnly(released.tensor))


def draw_orthogonal(true: Tensor, trials: int, generator: torch.Generator) -> Tensor:
    """Draw directions at right angles to a tensor, trials×its shape, each of its length; zeros where there is none."""
    drawn = normal(true.expand(trials, *true.shape), generator).flatten(1)
    flat = true.flatten()
    power = flat.square().sum()
    if true.numel() == 1 or not power > 0:
        return torch.zeros_like(drawn).view(trials, *true.shape)
    across = drawn - torch.outer(drawn @ flat / power, flat)
    lengths = across.norm(dim=1, keepdim=True).clamp(min=1e-30)
    found: Tensor = across * (power.sqrt() / lengths)
    return found.view(trials, *true.shape)


TOGETHER = 32
"""About so many images go through the model at once."""


def losses_after(model: nn.Module, loss: Loss, batch: Batch, drawn: Tensors, rate: float) -> Tensor:
    """Compute the loss of a batch after a step along each of the drawn gradients; the model is left as it is."""
    evaluated, before = copy.deepcopy(model).eval(), parameters_of(model)
    after = {name: before[name] - rate * tensor for name, tensor in drawn.items()}
    chunk = max(1, TOGETHER // len(batch))
    evaluate = vmap(loss_of_parameters(evaluated, loss), in_dims=(0, None, None), chunk_size=chunk)
    with torch.no_grad():
        losses: Tensor = evaluate(after, batch.pixels(), batch.labels)
    return losses


def loss_before(model: nn.Module, loss: Loss, batch: Batch) -> Tensor:
    """Compute the loss of a batch in evaluation mode."""
    with torch.no_grad():
        found: Tensor = loss(copy.deepcopy(model).eval()(batch.pixels()), batch.labels)
    return found
