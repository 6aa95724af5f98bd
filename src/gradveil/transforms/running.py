"""Run the steps of a policy over a batch: in chunks that fit in the cache, with consecutive value maps in one table."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import torch
from torch import Tensor

from gradveil.transforms.catalogue import Operation
from gradveil.transforms.point import count_values, look_up

CHUNK = 2**19  # values at a time: large enough to make calls cheap, small enough for the cache

Step = tuple[Operation, Tensor]


def run_steps(steps: Sequence[Step], images: Tensor) -> Tensor:
    """Apply operations in order, each with its magnitudes, to uint8 images N×C×H×W."""
    if len(images) == 0:
        return images.clone()
    # At most half the batch, so that working memory stays small for a small batch too.
    size = max(1, min(CHUNK // images[0].numel(), (len(images) + 1) // 2))
    done = torch.empty_like(images, memory_format=torch.contiguous_format)
    groups = number_groups(steps)
    for start in range(0, len(images), size):
        chunk = slice(start, start + size)
        chunk_steps = [(operation, magnitudes[chunk]) for operation, magnitudes in steps]
        run_chunk(chunk_steps, images[chunk], None if groups is None else groups[chunk], done[chunk])
    return done


def number_groups(steps: Sequence[Step]) -> Tensor | None:
    """Number the images, int64 N; images with one number have the same magnitudes in all steps that sort."""
    groups = None
    for operation, magnitudes in steps:
        if operation.sorts:
            values, numbers = torch.unique(magnitudes, return_inverse=True)
            groups = numbers if groups is None else groups * len(values) + numbers
    return groups


@torch.inference_mode()  # `done` was made outside, so it takes part in autograd as usual
def run_chunk(steps: Sequence[Step], images: Tensor, groups: Tensor | None, done: Tensor) -> None:
    """Write the results into `done`; images of one group are computed next to each other."""
    if groups is None:
        done.copy_(run_part(steps, images.contiguous()))
        return
    order = groups.argsort()
    sorted_steps = [(operation, magnitudes[order]) for operation, magnitudes in steps]
    torch.index_select(run_part(sorted_steps, images.index_select(0, order)), 0, order.argsort(), out=done)


def run_part(steps: Sequence[Step], images: Tensor) -> Tensor:
    for stretch in split_steps(steps):
        # A histogram pays if two operations need it; a single one has its own kernel that is as fast.
        if sum(operation.table is not None for operation, _ in stretch) > 1:
            images = look_up(images, compose(stretch, count_values(images)))
        else:
            for operation, magnitudes in stretch:
                images = operation.kernel(images, magnitudes)
    return images


def split_steps(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Split the steps into runs that map values and runs that do not."""
    for _, stretch in groupby(steps, key=lambda step: step[0].maps_values):
        yield list(stretch)


def compose(steps: Sequence[Step], counts: Tensor) -> Tensor:
    """Make one table, uint8 N×C×256, of operations that map values; `counts` is the histogram they start from.

    The histogram after each operation follows from the table, so pixels are counted and looked up only once.
    """
    tables = torch.arange(256, dtype=torch.uint8, device=counts.device).repeat(*counts.shape[:2], 1)
    for operation, magnitudes in steps:
        if operation.table is None:
            tables = operation.kernel(tables.view(*tables.shape[:2], 16, 16), magnitudes).flatten(2)
        else:
            indices = tables.long()
            tables = operation.table(torch.zeros_like(counts).scatter_add_(2, indices, counts)).gather(2, indices)
    return tables


def run_groups(images: Tensor, groups: Tensor, functions: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Apply `functions[g]` to the images of group g, int64 N; the images keep their places.

    It sorts, splits and sorts back: torch copies whole images much faster than it scatters them.
    """
    order = groups.argsort(stable=True)
    sizes = groups.bincount(minlength=len(functions)).tolist()
    parts = torch.split(images.index_select(0, order), sizes)
    done = [function(part) for function, part in zip(functions, parts, strict=True) if len(part)]
    return torch.cat(done).index_select(0, order.argsort())
