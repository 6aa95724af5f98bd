"""Directions in which a matrix is sparse, found by sampling rows (SPEAR, Dimitrov et al., NeurIPS 2024).

The columns of a matrix Y = A·Q are sparse and Q is not known. A column of Q is orthogonal to the rows of A where its
column of Y is zero. So rows are sampled, one fewer than there are columns; the vector orthogonal to them is a column of
Q, up to its length, if it makes A·q sparse.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

TOLERANCES = (1e-3, 1e-4, 1e-5)
"""Entries of a direction below this share of the largest count as zero: at first, when it is fitted, and at last."""
SPARSE = 0.1
"""The least share of zeros in a direction that may be one of an image."""
SAME = 0.999
MOST = 20
"""Sampling takes about 2^columns draws."""
CHUNK = 4096
SHORTEST = (0.25, 0.5, 1.0)
"""Rows are sampled from these shares of the shortest ones, in turn."""


def find_directions(
    rows: Tensor, lengths: Tensor, accept: Callable[[Tensor], bool], generator: torch.Generator, samples: int
) -> Tensor:
    """Sample rows of A until the sparsest directions, one for each column, are accepted: columns×found.

    A row of length zero says nothing. A short one has few columns that are not zero: sets of such rows are orthogonal
    to some direction far more often.
    """
    rank = rows.shape[1]
    if rank == 1:
        return rows.new_ones(1, 1)
    order = lengths.argsort()[int((lengths <= 1e-6 * lengths.max()).sum()) :]
    active = rows[order]
    known = rows.new_zeros(rank, 0)
    for turn in range(-(-samples // CHUNK)):
        among = max(min(len(active), 4 * rank), int(len(active) * SHORTEST[turn % len(SHORTEST)]))
        places = torch.randint(among, (CHUNK, rank - 1), generator=generator)
        fresh = refine(active, null_vectors(active[places]))
        if fresh.shape[1]:
            known = keep_sparsest(active, torch.cat([known, fresh], 1))
        if known.shape[1] == rank and accept(known):
            break
    return known


def null_vectors(rows: Tensor) -> Tensor:
    """Return the vector orthogonal to each set of rows, K×(rank−1)×rank: rank×K."""
    vectors: Tensor = torch.linalg.svd(rows, full_matrices=True).Vh[:, -1]
    return vectors.T


def refine(left: Tensor, candidates: Tensor) -> Tensor:
    """Keep the candidates that are sparse; fit each to all of its zeros, which averages rounding out."""
    zeros = zeros_of(left, candidates, TOLERANCES[0])
    sparse = zeros.double().mean(0) >= SPARSE
    fitted = [fit(left, own) for own in zeros.T[sparse]]
    return torch.stack(fitted, 1) if fitted else candidates[:, :0]


def fit(left: Tensor, zeros: Tensor) -> Tensor:
    """Fit a direction to its zeros; the better it is, the fewer small entries are still taken for zeros."""
    direction = last_vector(left[zeros])
    for tolerance in TOLERANCES[1:]:
        tighter = zeros_of(left, direction[:, None], tolerance)[:, 0]
        if 2 * int(tighter.sum()) < int(zeros.sum()):
            break
        direction = last_vector(left[tighter])
    return direction


def last_vector(rows: Tensor) -> Tensor:
    """Return the unit vector that is nearest to orthogonal to all rows."""
    vectors: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors
    return vectors[:, 0]


def zeros_of(left: Tensor, candidates: Tensor, tolerance: float) -> Tensor:
    """Tell which entries of L·q are zero, outputs×K."""
    slopes = (left @ candidates).abs()
    zeros: Tensor = slopes < tolerance * slopes.amax(0)
    return zeros


def keep_sparsest(left: Tensor, candidates: Tensor) -> Tensor:
    """Keep the sparsest directions that do not depend on each other.

    A mixture of two columns' directions is sparse as well, yet less so, and depends on theirs.
    """
    order = zeros_of(left, candidates, TOLERANCES[1]).sum(0).argsort(descending=True)
    chosen: list[Tensor] = []
    basis: list[Tensor] = []
    for place in order.tolist():
        rest = candidates[:, place]
        for known in basis:
            rest = rest - (known @ rest) * known
        length = float(torch.linalg.vector_norm(rest))
        if length > math.sqrt(1 - SAME**2):
            chosen.append(candidates[:, place])
            basis.append(rest / length)
        if len(chosen) == left.shape[1]:
            break
    return torch.stack(chosen, 1) if chosen else candidates
