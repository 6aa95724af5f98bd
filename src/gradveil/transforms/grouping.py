"""Run a kernel that takes one number on a batch where each image has its own."""

from collections.abc import Callable

import torch
from torch import Tensor

Fixed = Callable[[Tensor, float], Tensor]


def by_magnitude(images: Tensor, magnitudes: Tensor, fixed: Fixed) -> Tensor:
    """Apply `fixed` once for each distinct magnitude, to the images that have it."""
    values, groups = magnitudes.unique(return_inverse=True)
    if len(values) == 1:
        return fixed(images, float(values))
    return by_group(images, groups, [lambda part, value=value: fixed(part, value) for value in values.tolist()])


def by_group(images: Tensor, groups: Tensor, functions: list[Callable[[Tensor], Tensor]]) -> Tensor:
    """Apply `functions[g]` to the images of group g; the images keep their places.

    Sorts, cuts and sorts back: whole images are copied far faster than they are scattered.
    """
    order = groups.argsort(stable=True)
    sizes = groups.bincount(minlength=len(functions)).tolist()
    parts = images.index_select(0, order).split(sizes)
    done = [function(part) for function, part in zip(functions, parts, strict=True) if len(part)]
    return torch.cat(done).index_select(0, order.argsort())
