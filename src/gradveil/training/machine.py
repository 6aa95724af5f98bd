"""How the machine computes: its threads, and the layout of tensors in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def takes_channels_last(model: nn.Module) -> bool:
    """Tell whether the model may be laid out channels-last.

    oneDNN (with torch 2.13, AVX2) writes outside its memory in the backward pass of a strided 1×1 convolution that is
    laid out so and has fewer than 8 input channels; whether a weight is used with a stride cannot be seen here.
    """
    kernels = [parameter.shape for parameter in model.parameters() if parameter.dim() == 4]
    return all(shape[1] % 8 == 0 for shape in kernels if tuple(shape[2:]) == (1, 1))
