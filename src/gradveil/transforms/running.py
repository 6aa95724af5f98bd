"""Run the steps of a policy over a batch: in chunks that stay in the cache, and maps of values in one table."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from gradveil.transforms.catalogue import Operation
from gradveil.transforms.point import count_values, look_up

CHUNK = 2**19  # values at a time: temporaries of up to eight bytes each stay in the outer cache

Step = tuple[Operation, Tensor]


def run(steps: Sequence[Step], images: Tensor) -> Tensor:
    """Apply operations in order, each with its magnitudes, to uint8 images N×C×H×W."""
    done = torch.empty_like(images, memory_format=torch.contiguous_format)
    size = max(1, CHUNK // max(1, images[:1].numel()))
    for start in range(0, len(images), size):
        chunk = slice(start, start + size)
        done[chunk] = run_chunk([(operation, magnitudes[chunk]) for operation, magnitudes in steps], images[chunk])
    return done


def run_chunk(steps: Sequence[Step], images: Tensor) -> Tensor:
    images = images.contiguous()
    for stretch in stretches(steps):
        if sum(operation.table is not None for operation, _ in stretch) > 1:
            images = look_up(images, compose(stretch, count_values(images)))
        else:
            for operation, magnitudes in stretch:
                images = operation.kernel(images, magnitudes)
    return images


def stretches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Cut the steps where one that maps values meets one that does not."""
    for _, stretch in groupby(steps, key=lambda step: step[0].maps_values):
        yield list(stretch)


def compose(steps: Sequence[Step], counts: Tensor) -> Tensor:
    """Make one table, uint8 N×C×256, of operations that map values; `counts` is the histogram they start from.

    The histogram after each operation follows from the table, so the pixels are counted and looked up only once.
    """
    tables = torch.arange(256, dtype=torch.uint8, device=counts.device).repeat(*counts.shape[:2], 1)
    for operation, magnitudes in steps:
        if operation.table is None:
            tables = operation.kernel(tables.unflatten(2, (16, 16)), magnitudes).flatten(2)
        else:
            indices = tables.long()
            tables = operation.table(torch.zeros_like(counts).scatter_add_(2, indices, counts)).gather(2, indices)
    return tables
