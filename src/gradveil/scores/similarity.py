"""GradSim: the cosine between gradients, of the whole vectors or of each parameter tensor apart."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Form = Literal["layerwise", "global"]
EPSILON = 1e-8
"""The length below which a gradient counts as none, as in torch's own cosine, which the papers' code takes."""
SMALL = 2048


@dataclass(frozen=True, eq=False)
class Products:
    """Products with the target's gradient and lengths, float64 images×points×tensors; the target is the last point."""

    dots: Tensor
    lengths: Tensor


def multiply(gradients: Iterable[Tensor], starts: list[Tensor] | None = None) -> Products:
    """Multiply gradients, images×points×values for each parameter tensor, with that of the last point.

    `starts`, images×values for each parameter tensor, is one more point; it is put before the last.
    """
    small: dict[int, list[Tensor]] = {}
    dots, lengths = [], []
    for number, part in enumerate(gradients):
        rows = part if starts is None else torch.cat([part[:, :-1], starts[number].unsqueeze(1), part[:, -1:]], 1)
        if rows.shape[2] <= SMALL:  # these go together: there are many, and each costs more to begin than to do
            small.setdefault(rows.shape[2], []).append(rows)
            continue
        dots.append((rows @ rows[:, -1:].transpose(1, 2)).double())
        lengths.append(rows.norm(dim=2, keepdim=True).double())
    for parts in small.values():
        stacked = torch.stack(parts, 2).double()
        dots.append((stacked * stacked[:, -1:]).sum(3))
        lengths.append(stacked.norm(dim=3))
    return Products(torch.cat(dots, 2), torch.cat(lengths, 2))


def compare(products: Products, form: Form) -> Tensor:
    """Turn products into GradSim, float64 images×points."""
    dots, lengths = products.dots, products.lengths
    if form == "global":
        dots, lengths = dots.sum(2, keepdim=True), lengths.square().sum(2, keepdim=True).sqrt()
    lengths = lengths.clamp_min(EPSILON)
    return (dots / (lengths * lengths[:, -1:])).mean(2)
