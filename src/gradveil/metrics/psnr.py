"""Peak signal-to-noise ratio."""

import torch
from torch import Tensor

CEILING = 100.0
"""Identical images would score infinity; a mean over images needs a number."""


def psnr(guess: Tensor, target: Tensor) -> Tensor:
    """Score each image of N×C×H×W in [0, 1] against its target, in dB, at most 100.

    >>> psnr(torch.full((1, 1, 2, 2), 0.6), torch.full((1, 1, 2, 2), 0.5)).round(decimals=2)
    tensor([20.], dtype=torch.float64)
    """
    return psnr_of_error((guess.double() - target.double()).square().mean(dim=(-3, -2, -1)))


def psnr_of_error(error: Tensor) -> Tensor:
    """Turn a mean squared error into dB, at most 100."""
    return -10 * torch.log10(error.clamp(min=10 ** (-CEILING / 10)))
