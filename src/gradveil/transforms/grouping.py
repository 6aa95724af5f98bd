"""Run a kernel that takes one number on a batch where each image has its own."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor


def by_magnitude(images: Tensor, magnitudes: Tensor, kernel: Callable[[float, Tensor], Tensor]) -> Tensor:
    """Apply `kernel` once for each distinct magnitude, to the images that have it."""
    values = magnitudes.tolist()
    distinct = sorted(set(values))
    if len(distinct) == 1:
        return kernel(distinct[0], images)
    groups = torch.tensor([distinct.index(value) for value in values], device=images.device)
    return by_group(images, groups, [partial(kernel, value) for value in distinct])


def by_group(images: Tensor, groups: Tensor, functions: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Apply `functions[g]` to the images of group g, int64 N; the images keep their places.

    Sorts, cuts and sorts back: torch copies whole images far faster than it scatters them.
    """
    order = groups.argsort(stable=True)
    sizes = groups.bincount(minlength=len(functions)).tolist()
    parts = torch.split(images.index_select(0, order), sizes)
    done = [function(part) for function, part in zip(functions, parts, strict=True) if len(part)]
    return torch.cat(done).index_select(0, order.argsort())
