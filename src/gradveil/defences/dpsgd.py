"""Differentially private gradients (Abadi et al., 2016)."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from gradveil.defences.base import Compute, Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.noise import normal
from gradveil.gradients import BATCH_NORM, Tensors, gradients_apart, parameters_of
from gradveil.losses import Loss
from gradveil.rng import global_state_from
from gradveil.types import Batch

GROUPS = 32
ENTRIES = 2**25
"""How many entries of single images' gradients are held at once: 128 MB."""


@dataclass(frozen=True, repr=False)
class DPSGD(Parametrised):
    """Clip the gradient of every image to the norm `clip`, add normal noise of deviation `noise`·`clip` to their sum.

    The sum is divided by the number of images. Batch normalisation, through which an image touches the gradients of
    others, is replaced by group normalisation.
    """

    noise: float
    clip: float
    delta: float = 1e-5

    name: ClassVar[str] = "dpsgd"
    hooks: ClassVar[tuple[Hook, ...]] = ("model", "compute")
    poisson: ClassVar[bool] = True
    used: ClassVar[str] = "the strength of the noise"
    allowed: ClassVar[str] = (
        "write dpsgd:noise=S:clip=C, with :delta=D if it shall not be 1e-5; S ≥ 0, C > 0, 0 < D < 1, such as "
        "dpsgd:noise=1.1:clip=1"
    )

    def is_allowed(self) -> bool:
        return 0 <= self.noise < math.inf and 0 < self.clip < math.inf and 0 < self.delta < 1

    def model(self, model: nn.Module, generator: torch.Generator) -> nn.Module:  # noqa: ARG002
        return replace_batch_norm(copy.deepcopy(model))

    def compute(self, inner: Compute) -> Compute:  # noqa: ARG002
        return self.noised_mean

    def noised_mean(self, model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
        """Take the mean of the clipped gradients, noise included; of no images, the noise alone."""
        total = {name: torch.zeros_like(tensor) for name, tensor in parameters_of(model).items()}
        with global_state_from(generator):
            for gradients in single_gradients(model, loss, batch):
                for name, tensor in clipped_sum(gradients, self.clip).items():
                    total[name] += tensor
        images = max(1, len(batch))
        deviation = self.deviation(images)
        return {name: tensor / images + deviation * normal(tensor, generator) for name, tensor in total.items()}

    def deviation(self, images: int) -> float:
        return self.noise * self.clip / images


def single_gradients(model: nn.Module, loss: Loss, batch: Batch) -> Iterator[Tensors]:
    """Take the gradient of every image alone, N×…, so many images at a time as memory allows."""
    size = max(1, ENTRIES // max(1, sum(tensor.numel() for tensor in parameters_of(model).values())))
    pixels = batch.pixels()
    for start in range(0, len(batch), size):
        part = slice(start, start + size)
        yield gradients_apart(model, loss, pixels[part].unsqueeze(1), batch.labels[part].unsqueeze(1))


def clipped_sum(gradients: Tensors, clip: float) -> Tensors:
    """Scale every image's gradient down to the norm `clip` if it is longer, and add them up."""
    squares = [tensor.detach().flatten(1).square().sum(1) for tensor in gradients.values()]
    norms: Tensor = torch.stack(squares).sum(0).sqrt()
    factors = (clip / norms.clamp(min=1e-30)).clamp(max=1)
    return {name: torch.tensordot(factors, tensor.detach(), dims=1) for name, tensor in gradients.items()}


def replace_batch_norm(module: nn.Module) -> nn.Module:
    """Put group normalisation with the same scale and shift in place of every batch normalisation, in place."""
    if isinstance(module, BATCH_NORM):
        return group_norm(module)
    for name, child in module.named_children():
        setattr(module, name, replace_batch_norm(child))
    return module


def group_norm(source: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) -> nn.GroupNorm:
    """Make a group normalisation of up to 32 groups, as Opacus does."""
    channels = source.num_features
    layer = nn.GroupNorm(math.gcd(GROUPS, channels), channels, source.eps, source.affine)
    if source.affine:
        layer.weight, layer.bias = source.weight, source.bias
    return layer.train(source.training)
