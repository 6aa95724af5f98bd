"""Convolutions with a batch normalisation after them, and how its running statistics are folded into their weights."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class ConvolutionPair:
    """A convolution, the batch normalisation that takes its output, and how many positions that output has."""

    convolution: nn.Conv2d
    normalisation: nn.BatchNorm2d
    name: str
    positions: int

    @property
    def window(self) -> int:
        """Count the values that one position of the output depends on."""
        return self.convolution.weight[0].numel()

    @property
    def deviation(self) -> Tensor:
        """Return 1/σ of each channel."""
        variance = self.normalisation.running_var
        assert variance is not None
        return (variance + self.normalisation.eps).rsqrt()

    @property
    def shift(self) -> Tensor:
        """Return what is added to each channel before it is scaled: the bias less the running mean."""
        mean, bias = self.normalisation.running_mean, self.convolution.bias
        assert mean is not None
        return -mean if bias is None else bias - mean


@torch.no_grad()
def find_pairs(model: nn.Module, image: Tensor) -> list[ConvolutionPair]:
    """Watch an image pass and find every batch normalisation that is fed straight from a convolution.

    That nothing else takes the convolution's output cannot be seen here: compare the folded model with the original.
    """
    made: list[tuple[nn.Conv2d, Tensor]] = []
    pairs: list[ConvolutionPair] = []

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if type(module) is nn.Conv2d:
                made.append((module, output))
            elif type(module) is nn.BatchNorm2d and module.affine and module.track_running_stats:
                sources = [convolution for convolution, tensor in made if tensor is inputs[0]]
                pairs.extend(ConvolutionPair(source, module, name, output[0, 0].numel()) for source in sources)

        return keep

    handles = [module.register_forward_hook(watch(name)) for name, module in model.named_modules()]
    try:
        model(image)
    finally:
        for handle in handles:
            handle.remove()
    return pairs


@torch.no_grad()
def fold(model: nn.Module, pair: ConvolutionPair) -> None:
    """Put the normalisation into the convolution's weights and nothing in its place; `pair` loses its meaning."""
    convolution, normalisation = pair.convolution, pair.normalisation
    scale = normalisation.weight * pair.deviation
    bias = pair.shift * scale + normalisation.bias
    convolution.weight = nn.Parameter(convolution.weight * scale.view(-1, 1, 1, 1), requires_grad=False)
    convolution.bias = nn.Parameter(bias, requires_grad=False)
    model.set_submodule(pair.name, nn.Identity())
