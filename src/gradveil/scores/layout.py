"""How a model lies in memory: channels last where it may, which is up to twice as fast."""

import torch
from torch import nn


def lay_out(model: nn.Module) -> tuple[nn.Module, torch.memory_format]:
    """Lay out a model, in place, and tell how its images have to lie."""
    layout = torch.channels_last if fits_channels_last(model) else torch.contiguous_format
    return model.to(memory_format=layout), layout  # type: ignore[call-overload]


def fits_channels_last(model: nn.Module) -> bool:
    """Tell whether the model may be laid out channels-last.

    oneDNN (with torch 2.13, AVX2) writes outside its memory in the backward pass of a strided 1×1 convolution that is
    laid out so and has fewer than 8 input channels.
    """
    return not any(
        isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and module.stride != (1, 1)
        and module.in_channels % 8
        for module in model.modules()
    )
