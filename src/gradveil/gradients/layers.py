"""What the gradient of each image is, layer by layer, from the layer's inputs and the slopes at its outputs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradveil.gradients.convolution_pairs import ConvolutionPair, find_pairs, fold

CACHE = 2_000_000
"""Bytes that are laid out at a time; measured on cores with 1.25 MB of second-level cache, and flat around it."""


class Layer(ABC):
    """A module with parameters whose gradients we know how to take image by image."""

    module: nn.Module

    @abstractmethod
    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        """Yield one tensor N×anything for each parameter tensor that the layer has."""


class LinearLayer(Layer):
    """A linear layer on one row or many of each image."""

    def __init__(self, module: nn.Linear) -> None:
        self.module, self.has_bias = module, module.bias is not None

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        rows = slopes.flatten(1, -2) if slopes.dim() > 2 else slopes.unsqueeze(1)
        yield (rows.transpose(1, 2) @ inputs.reshape(len(inputs), rows.shape[1], -1)).flatten(1)
        if self.has_bias:
            yield rows.sum(1)


class BatchNormLayer(Layer):
    """Batch normalisation by running statistics."""

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
    """A convolution without groups."""

    def __init__(self, module: nn.Conv2d) -> None:
        self.module, self.has_bias = module, module.bias is not None
        self.size, self.stride, self.padding, self.dilation = (
            two_numbers(value) for value in (module.kernel_size, module.stride, module.padding, module.dilation)
        )

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        last = slopes.permute(0, 2, 3, 1).flatten(1, 2)
        yield self.kernel_gradients(inputs, last, slopes.shape[2:]).flatten(1)
        if self.has_bias:
            yield last.sum(1)

    def kernel_gradients(self, inputs: Tensor, slopes: Tensor, shape: torch.Size) -> Tensor:
        """Multiply the slopes, N×positions×outputs, with what each position sees: N×outputs×window.

        A few images at a time, so that what is laid out for them stays in the cache.
        """
        window = inputs.shape[1] * self.size[0] * self.size[1]
        size = max(1, CACHE // (shape.numel() * window * inputs.element_size()))
        size = min(size, len(inputs))
        inside, windows = self.frame(inputs, size, shape)
        seen = slopes.new_empty(windows.shape)
        gradients = slopes.new_empty(len(inputs), slopes.shape[2], window)
        for first in range(0, len(inputs), size):
            chosen = slice(first, min(first + size, len(inputs)))
            count = chosen.stop - first
            inside[:count].copy_(inputs[chosen].permute(0, 2, 3, 1))
            rows = seen[:count].copy_(windows[:count]).view(count, -1, window)
            torch.bmm(slopes[chosen].transpose(1, 2), rows, out=gradients[chosen])
        return gradients

    def frame(self, inputs: Tensor, count: int, shape: torch.Size) -> tuple[Tensor, Tensor]:
        """Make a padded frame for a few images: a view of its inside, and one of what each output position sees.

        The second is N×height×width×kernel height×kernel width×channels.
        """
        (rows, columns), (height, width) = self.padding, inputs.shape[2:]
        padded = inputs.new_zeros(count, height + 2 * rows, width + 2 * columns, inputs.shape[1])
        image, line, column, _ = padded.stride()
        (down, right), (skip, slip) = self.stride, self.dilation
        windows = padded.as_strided(
            (count, *shape, *self.size, inputs.shape[1]),
            (image, down * line, right * column, skip * line, slip * column, 1),
        )
        return padded[:, rows : rows + height, columns : columns + width], windows


class FoldedLayer(ConvolutionLayer):
    """A convolution with a batch normalisation folded in: four parameter tensors, or three, in one layer.

    With G the slopes times the windows of a channel, its kernel's gradient is G·γ/σ. The batch normalisation's own
    follow without another look at the images: β's is the sum of the slopes, γ's (⟨G, kernel⟩ + shift·sum)/σ.
    """

    def __init__(self, pair: ConvolutionPair) -> None:
        super().__init__(pair.convolution)
        self.kernel = pair.convolution.weight.detach().permute(0, 2, 3, 1).flatten(1).clone()
        self.deviation, self.shift = pair.deviation.detach(), pair.shift.detach().clone()
        self.scale = (pair.normalisation.weight * self.deviation).detach()

    def gradients(self, inputs: Tensor, slopes: Tensor) -> Iterator[Tensor]:
        last = slopes.permute(0, 2, 3, 1).flatten(1, 2)
        kernels, total = self.kernel_gradients(inputs, last, slopes.shape[2:]), last.sum(1)
        yield self.deviation * ((kernels * self.kernel).sum(2) + self.shift * total)
        yield total
        if self.has_bias:
            yield total * self.scale
        yield kernels.mul_(self.scale.view(-1, 1)).flatten(1)


def two_numbers(value: object) -> tuple[int, int]:
    assert isinstance(value, tuple)
    first, second = value
    return int(first), int(second)


def find_layers(model: nn.Module, image: Tensor) -> list[Layer]:
    """Wrap every module that has parameters, folding batch normalisation where that pays; `model` is changed.

    It pays where a layer's output has more positions than each of them depends on values.
    """
    folded: dict[nn.Module, Layer] = {}
    for pair in find_pairs(model, image):
        if pair.positions >= pair.window and is_plain(pair.convolution):
            folded[pair.convolution] = FoldedLayer(pair)
            fold(model, pair)
    own = [module for module in model.modules() if next(module.parameters(recurse=False), None) is not None]
    return [folded.get(module) or make_layer(module) for module in own]


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
