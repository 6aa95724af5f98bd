"""Independent component analysis (FastICA, Hyvärinen 1999): sources that are not Gaussian, from their mixtures."""

import torch
from torch import Tensor

ROUNDS = 200
SETTLED = 1e-10
TINY = 1e-12


def find_components(mixtures: Tensor, generator: torch.Generator) -> Tensor:
    """Find the matrix that turns mixtures, K×N, into K sources that are as independent as can be: K×K.

    Mixtures are whitened, so sources are decorrelated; each is as far from Gaussian as its log cosh can tell. A source
    has any sign and length.
    """
    centred = mixtures - mixtures.mean(1, keepdim=True)
    whitening = whiten(centred)
    white = whitening @ centred
    start = torch.randn(len(mixtures), len(mixtures), generator=generator, dtype=torch.float64)
    rotation = decorrelate(start)
    for _ in range(ROUNDS):
        bent = torch.tanh(rotation @ white)
        steepness = (1 - bent.square()).mean(1, keepdim=True)
        following = decorrelate(bent @ white.T / white.shape[1] - steepness * rotation)
        moved = float(((following * rotation).sum(1).abs() - 1).abs().max())
        rotation = following
        if moved < SETTLED:
            break
    return rotation @ whitening


def whiten(centred: Tensor) -> Tensor:
    """Find the symmetric matrix that makes the covariance of K×N the identity."""
    values, vectors = torch.linalg.eigh(centred @ centred.T / centred.shape[1])
    whitening: Tensor = vectors @ torch.diag(values.clamp(min=TINY).rsqrt()) @ vectors.T
    return whitening


def decorrelate(matrix: Tensor) -> Tensor:
    """Return the nearest rotation."""
    left, _, right = torch.linalg.svd(matrix)
    nearest: Tensor = left @ right
    return nearest
