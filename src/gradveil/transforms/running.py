"""Run the steps of a policy over a batch: in chunks that stay in the cache, and maps of values in one table."""

from collections.abc import Iterable, Iterator, Sequence
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
    if groups is None:
        return run_parts(steps, (part.contiguous() for part in torch.split(images, size)), done)
    order = groups.argsort()
    parts = (images.index_select(0, chosen) for chosen in torch.split(order, size))
    run_parts([(operation, magnitudes[order]) for operation, magnitudes in steps], parts, done)
    return done.index_select(0, order.argsort())


def group(steps: Sequence[Step]) -> Tensor | None:
    """Number the images, int64 N, so that those with one number agree in every magnitude to sort by."""
    groups = None
    for operation, magnitudes in steps:
        if operation.sorts:
            values, numbers = torch.unique(magnitudes, return_inverse=True)
            groups = numbers if groups is None else groups * len(values) + numbers
    return groups


@torch.inference_mode()  # `done` was made outside, so what is given back takes part in autograd as usual
def run_parts(steps: Sequence[Step], parts: Iterable[Tensor], done: Tensor) -> Tensor:
    """Put the results for one part after the other into `done`."""
    start = 0
    for part in parts:
        chunk = slice(start, start + len(part))
        done[chunk] = run_part([(operation, magnitudes[chunk]) for operation, magnitudes in steps], part)
        start = chunk.stop
    return done


def run_part(steps: Sequence[Step], images: Tensor) -> Tensor:
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
            tables = operation.kernel(tables.view(*tables.shape[:2], 16, 16), magnitudes).flatten(2)
        else:
            indices = tables.long()
            tables = operation.table(torch.zeros_like(counts).scatter_add_(2, indices, counts)).gather(2, indices)
    return tables
