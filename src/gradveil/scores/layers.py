"""What the gradient of each image is, layer by layer, from the layer's inputs and the slopes at its outputs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Layer(ABC):
    """A module with parameters whose gradients we know how to take image by image."""

    module: nn.Module

    @abstractmethod
    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        """Give one tensor N×anything for each parameter tensor that the layer has."""


class LinearLayer(Layer):
    def __init__(self, module: nn.Linear) -> None:
        self.module, self.has_bias = module, module.bias is not None

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        rows = slopes.flatten(1, -2) if slopes.dim() > 2 else slopes.unsqueeze(1)
        yield (rows.transpose(1, 2) @ inputs.reshape(len(inputs), rows.shape[1], -1)).flatten(1)
        if self.has_bias:
            yield rows.sum(1)


class BatchNormLayer(Layer):
    def __init__(self, module: nn.BatchNorm2d) -> None:
        assert module.running_mean is not None
        assert module.running_var is not None
        self.module = module
        self.mean = module.running_mean
        self.scale = (module.running_var + module.eps).rsqrt()

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        total = slopes.sum((2, 3))
        yield self.scale * ((inputs * slopes).sum((2, 3)) - self.mean * total)
        yield total


class ConvolutionLayer(Layer):
    def __init__(self, module: nn.Conv2d) -> None:
        self.module, self.has_bias = module, module.bias is not None
        self.size, self.stride, self.padding, self.dilation = (
            pair(value) for value in (module.kernel_size, module.stride, module.padding, module.dilation)
        )

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        last = slopes.permute(0, 2, 3, 1).flatten(1, 2)
        yield torch.bmm(last.transpose(1, 2), self.windows(inputs, slopes.shape[2:])).flatten(1)
        if self.has_bias:
            yield last.sum(1)

    def windows(self, inputs: Tensor, shape: torch.Size) -> Tensor:
        """Lay out what each output position sees, N×positions×(kernel·channels)."""
        rows, columns = self.padding
        padded = F.pad(inputs.permute(0, 2, 3, 1), (0, 0, columns, columns, rows, rows)).contiguous()
        image, line, column, _ = padded.stride()
        (up, right), (skip, slip) = self.stride, self.dilation
        height, width = self.size
        view = padded.as_strided(
            (len(inputs), *shape, height, width, inputs.shape[1]),
            (image, up * line, right * column, skip * line, slip * column, 1),
        )
        return view.reshape(len(inputs), shape[0] * shape[1], -1)


def pair(value: object) -> tuple[int, int]:
    assert isinstance(value, tuple)
    first, second = value
    return int(first), int(second)


def find_layers(model: nn.Module) -> list[Layer]:
    """Wrap every module that has parameters; refuse a model with others than we know."""
    return [
        make_layer(module) for module in model.modules() if next(module.parameters(recurse=False), None) is not None
    ]


def make_layer(module: nn.Module) -> Layer:
    if type(module) is nn.Linear:
        return LinearLayer(module)
    if type(module) is nn.BatchNorm2d and module.affine and module.track_running_stats:
        return BatchNormLayer(module)
    if type(module) is nn.Conv2d and is_plain(module):
        return ConvolutionLayer(module)
    raise NotImplementedError(f"the gradient of single images of {type(module).__name__}")


def is_plain(module: nn.Conv2d) -> bool:
    return module.groups == 1 and module.padding_mode == "zeros" and not isinstance(module.padding, str)


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
