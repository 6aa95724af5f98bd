"""Run the steps of a policy over a batch: in chunks that stay in the cache, and maps of values in one table."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from gradveil.transforms.catalogue import Operation
from gradveil.transforms.point import count_values, look_up

CHUNK = 2**19  # values at a time: enough to make the cost of a call small, few enough to stay in the cache

Step = tuple[Operation, Tensor]


def run(steps: Sequence[Step], images: Tensor) -> Tensor:
    """Apply operations in order, each with its magnitudes, to uint8 images N×C×H×W."""
    if len(images) == 0:
        return images.clone()
    # Half the batch at most, so that what is needed besides stays small next to a small batch, too.
    size = max(1, min(CHUNK // images[0].numel(), (len(images) + 1) // 2))
    done = torch.empty_like(images, memory_format=torch.contiguous_format)
    groups = group(steps)
    for start in range(0, len(images), size):
        chunk = slice(start, start + size)
        chunk_steps = [(operation, magnitudes[chunk]) for operation, magnitudes in steps]
        run_chunk(chunk_steps, images[chunk], None if groups is None else groups[chunk], done[chunk])
    return done


def group(steps: Sequence[Step]) -> Tensor | None:
    """Number the images, int64 N, so that those with one number agree in every magnitude to sort by."""
    groups = None
    for operation, magnitudes in steps:
        if operation.sorts:
            values, numbers = torch.unique(magnitudes, return_inverse=True)
            groups = numbers if groups is None else groups * len(values) + numbers
    return groups


@torch.inference_mode()  # `done` was made outside, so what is given back takes part in autograd as usual
def run_chunk(steps: Sequence[Step], images: Tensor, groups: Tensor | None, done: Tensor) -> None:
    """Write the results into `done`; images of one group are next to each other while they are worked on."""
    if groups is None:
        done.copy_(run_part(steps, images.contiguous()))
        return
    order = groups.argsort()
    sorted_steps = [(operation, magnitudes[order]) for operation, magnitudes in steps]
    torch.index_select(run_part(sorted_steps, images.index_select(0, order)), 0, order.argsort(), out=done)


def run_part(steps: Sequence[Step], images: Tensor) -> Tensor:
    for stretch in stretches(steps):
        # Counting values pays if two operations need it; alone, each has a way of its own that is as fast.
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
            tables = operation.kernel(tables.view(*tables.shape[:2], 16, 16), magnitudes).flatten(2)
        else:
            indices = tables.long()
            tables = operation.table(torch.zeros_like(counts).scatter_add_(2, indices, counts)).gather(2, indices)
    return tables
