"""Run a kernel that takes one number on a batch where each image has its own."""

from collections.abc import Callable, Sequence
from itertools import groupby

import torch
from torch import Tensor


def by_magnitude(images: Tensor, magnitudes: Tensor, kernel: Callable[[float, Tensor], Tensor]) -> Tensor:
    """Apply `kernel` to each run of images with one magnitude; fastest where these are few."""
    runs = [(value, len(list(run))) for value, run in groupby(magnitudes.tolist())]
    if len(runs) == 1:
        return kernel(runs[0][0], images)
    parts = torch.split(images, [length for _, length in runs])
    return torch.cat([kernel(value, part) for (value, _), part in zip(runs, parts, strict=True)])


def by_group(images: Tensor, groups: Tensor, functions: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Apply `functions[g]` to the images of group g, int64 N; the images keep their places.

    Sorts, cuts and sorts back: torch copies whole images far faster than it scatters them.
    """
    order = groups.argsort(stable=True)
    sizes = groups.bincount(minlength=len(functions)).tolist()
    parts = torch.split(images.index_select(0, order), sizes)
    done = [function(part) for function, part in zip(functions, parts, strict=True) if len(part)]
    return torch.cat(done).index_select(0, order.argsort())
