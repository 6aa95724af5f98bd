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
COUNTING = (1e-4, 1e-6)
"""Directions are ranked by their zeros at each of these. Two images of a label have almost the same slopes where both
are active, so that only the finer one tells their difference from a column; rounding may hide zeros from it."""
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
    known = dict.fromkeys(COUNTING, rows.new_zeros(rank, 0))
    for turn in range(-(-samples // CHUNK)):
        among = max(min(len(active), 4 * rank), int(len(active) * SHORTEST[turn % len(SHORTEST)]))
        places = torch.randint(among, (CHUNK, rank - 1), generator=generator)
        fresh = refine(active, null_vectors(active[places]))
        for tolerance in COUNTING if fresh.shape[1] else ():
            known[tolerance] = keep_sparsest(active, torch.cat([known[tolerance], fresh], 1), tolerance)
            if known[tolerance].shape[1] == rank and accept(known[tolerance]):
                return known[tolerance]
    return known[COUNTING[0]]


def null_vectors(rows: Tensor) -> Tensor:
    """Return the vector orthogonal to each set of rows, K×(rank−1)×rank: rank×K."""
    vectors: Tensor = torch.linalg.svd(rows, full_matrices=True).Vh[:, -1]
    return vectors.T


def refine(left: Tensor, candidates: Tensor) -> Tensor:
    """Keep the candidates that are sparse; fit each to all of its zeros, which averages rounding out.

    The better a direction is, the fewer small entries are still taken for zeros.
    """
    zeros = zeros_of(left, candidates, TOLERANCES[0])
    sparse = zeros.double().mean(0) >= SPARSE
    zeros, directions = zeros[:, sparse], candidates[:, sparse]
    if directions.shape[1] == 0:
        return directions
    going, at_first = torch.ones(directions.shape[1], dtype=torch.bool), zeros.sum(0)
    for tolerance in (None, *TOLERANCES[1:]):
        if tolerance is not None:
            zeros = zeros_of(left, directions, tolerance)
            going = going & (2 * zeros.sum(0) >= at_first)
        directions = torch.where(going, last_vectors(left, zeros), directions)
    return directions


def last_vectors(left: Tensor, chosen: Tensor) -> Tensor:
    """Return, for each of K choices of rows, the unit vector that is nearest to orthogonal to all of them: rank×K."""
    rank = left.shape[1]
    products = (left[:, :, None] * left[:, None, :]).flatten(1)
    squares = (chosen.to(left).T @ products).view(-1, rank, rank)
    vectors: Tensor = torch.linalg.eigh(squares).eigenvectors
    return vectors[:, :, 0].T


def zeros_of(left: Tensor, candidates: Tensor, tolerance: float) -> Tensor:
    """Tell which entries of L·q are zero, outputs×K."""
    slopes = (left @ candidates).abs()
    zeros: Tensor = slopes < tolerance * slopes.amax(0)
    return zeros


def keep_sparsest(left: Tensor, candidates: Tensor, tolerance: float) -> Tensor:
    """Keep the sparsest directions that do not depend on each other.

    A mixture of two columns' directions is sparse as well, yet less so, and depends on theirs.
    """
    order = zeros_of(left, candidates, tolerance).sum(0).argsort(descending=True)
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
