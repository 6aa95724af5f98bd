"""Pair the rebuilt images of a batch with the true ones."""

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from gradveil.metrics.psnr import psnr_of_error


def assign(guesses: Tensor, targets: Tensor) -> Tensor:
    """Find the guess for each target of N×C×H×W, int64 N: the pairing with the highest total PSNR.

    Every guess is used once (the Hungarian method).

    >>> images = torch.stack([torch.zeros(1, 2, 2), torch.ones(1, 2, 2)])
    >>> assign(images.flip(0), images)
    tensor([1, 0])
    """
    if guesses.shape != targets.shape:
        raise ValueError(
            f"guesses of shape {tuple(guesses.shape)} for targets of shape {tuple(targets.shape)}: they must agree"
        )
    ours, theirs = (images.detach().double().cpu().flatten(1) for images in (guesses, targets))
    errors = torch.stack([(ours - target).square().mean(1) for target in theirs])
    # A guess that is not finite has no value, but it must be paired with some target.
    scores = psnr_of_error(errors).nan_to_num(nan=-1e3, neginf=-1e3)
    _, chosen = linear_sum_assignment(-scores.numpy())
    return torch.from_numpy(chosen).to(torch.int64)
