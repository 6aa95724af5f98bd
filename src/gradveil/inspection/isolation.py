"""How much of a batch's gradient comes from one image, layer by layer and neuron by neuron."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradveil.losses import Loss

ALONE = 0.95
"""A neuron hears an image alone if so much of its gradient comes from it."""


@dataclass(frozen=True)
class Isolation:
    """Of one parameter tensor: its D-SNR, and the share of its neurons that hear one image of the batch alone.

    D-SNR (Garov et al., "Hiding in Plain Sight", ICLR 2024): the length of the largest gradient of a single image,
    divided by the sum of the lengths of all others.
    """

    d_snr: float
    alone: float


def measure_isolation(model: nn.Module, loss: Loss, images: Tensor, labels: Tensor) -> dict[str, Isolation]:
    """Measure every trained parameter tensor on one batch, with batch normalisation and dropout as in evaluation."""
    model = copy.deepcopy(model).eval()
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    lengths: dict[str, list[Tensor]] = {name: [] for name in named}
    for place in range(len(images)):
        value = loss(model(images[place : place + 1]), labels[place : place + 1])
        slopes = torch.autograd.grad(value, list(named.values()), allow_unused=True, materialize_grads=True)
        for name, slope in zip(named, slopes, strict=True):
            lengths[name].append(slope.flatten(1).norm(dim=1) if slope.dim() > 1 else slope.flatten().abs())
    return {name: summarise(torch.stack(rows).double()) for name, rows in lengths.items()}


def summarise(lengths: Tensor) -> Isolation:
    """Summarise lengths of gradients, images×neurons."""
    whole = lengths.norm(dim=1)
    largest = whole.max()
    rest = whole.sum() - largest
    ratio = float(largest / rest) if rest > 0 else (float("inf") if largest > 0 else 0.0)
    totals = lengths.sum(0)
    heard = totals > 0
    alone = (lengths.amax(0)[heard] > ALONE * totals[heard]).double()
    return Isolation(ratio, float(alone.mean()) if len(alone) else 0.0)


def worst(batches: Sequence[Mapping[str, Isolation]]) -> dict[str, Isolation]:
    """Take the largest values over batches."""
    return {
        name: Isolation(max(batch[name].d_snr for batch in batches), max(batch[name].alone for batch in batches))
        for name in batches[0]
    }
