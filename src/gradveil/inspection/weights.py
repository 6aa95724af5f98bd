"""Patterns in weights that neither a random start nor training leaves, and that known attacks plant.

An imprint (Fowl et al., "Robbing the Fed", ICLR 2022) is a layer whose neurons all measure the same thing, their biases
being thresholds in rising order. Trap weights (Boenisch et al., "When the Curious Abandon Honesty", EuroS&P 2023) are
rows with as many negative as positive entries, the ones being a scaled copy of the others in another order.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

LEAST_ROWS = 8
LEAST_ENTRIES = 8
"""Smaller tensors show patterns by chance."""
SAME_DIRECTION = 1 - 1e-5
SAME_RATIO = 0.01
BLOCK = 1024


@dataclass(frozen=True)
class OddWeights:
    """Shares of a tensor's rows, one row for each neuron or kernel; `norm` is the median length of a row.

    `zero` rows have no effect; the other shares are of the rows that have one. `copies` point in the direction of
    another row, or against it; `constant` rows have one value throughout; `mirrored` rows have positive entries that
    are the negative ones, scaled. `ladder`: the biases rise, or fall, from row to row.
    """

    rows: int
    zero: float
    copies: float
    constant: float
    mirrored: float
    ladder: bool
    norm: float


def look_at_weights(weight: Tensor, bias: Tensor | None) -> OddWeights | None:
    """Look at one weight tensor, rows×anything; None if it is too small to tell."""
    rows = weight.detach().flatten(1).double()
    if rows.shape[0] < LEAST_ROWS or rows.shape[1] < LEAST_ENTRIES:
        return None
    lengths = rows.norm(dim=1)
    used = rows[lengths > 0]
    return OddWeights(
        rows=len(rows),
        zero=share(lengths == 0),
        copies=share(find_copies(used)),
        constant=share((used - used[:, :1]).abs().amax(1) <= 1e-6 * used.abs().amax(1)),
        mirrored=share(torch.tensor([is_mirrored(row) for row in used])),
        ladder=bias is not None and is_ladder(bias.detach()),
        norm=float(lengths.median()),
    )


def share(mask: Tensor) -> float:
    return float(mask.double().mean()) if len(mask) else 0.0


def find_copies(rows: Tensor) -> Tensor:
    """Mark the rows that have the direction of another one, or the opposite direction."""
    directions = rows / rows.norm(dim=1, keepdim=True)
    marks = torch.zeros(len(rows), dtype=torch.bool)
    for first in range(0, len(rows), BLOCK):
        cosines = (directions[first : first + BLOCK] @ directions.T).abs()
        places = torch.arange(len(cosines))
        cosines[places, first + places] = 0
        marks[first : first + BLOCK] = (cosines > SAME_DIRECTION).any(1)
    return marks


def is_mirrored(row: Tensor) -> bool:
    """Tell whether the positive entries are a scaled copy of the negative ones; a row of one magnitude is not."""
    positive, negative = row[row > 0].sort().values, (-row[row < 0]).sort().values
    if len(positive) != len(negative) or len(positive) < LEAST_ENTRIES // 2:
        return False
    if row.abs().std() < SAME_RATIO * row.abs().mean():
        return False
    ratios = positive / negative
    return bool(ratios.std() < SAME_RATIO * ratios.mean())


def is_ladder(bias: Tensor) -> bool:
    """Tell whether the biases are in strict order; by chance, one list of eight in 20,160 is."""
    steps = bias.double().diff()
    return len(bias) >= 2 * LEAST_ROWS and bool((steps > 0).all() or (steps < 0).all())
