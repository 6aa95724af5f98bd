"""Batch normalisation in evaluation mode as part of the convolution before it, with the parameters of both kept apart.

The images are passed over once instead of twice, and so are their slopes; the gradients of all parameters stay what
they were, because the folded weights are computed from them at every pass.
"""

from collections import OrderedDict
from itertools import pairwise
from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.gradients.batch_norm import FrozenBatchNorm, freeze_batch_norm, replace_layers


class FoldedSequential(nn.Sequential):
    """Run layers in turn, a convolution and the frozen normalisation after it as one; names stay as they are."""

    def __init__(self, layers: "OrderedDict[str, nn.Module]") -> None:
        super().__init__(layers)
        self.folded = {first for first, second in pairwise(layers.values()) if can_fold(first, second)}

    def forward(self, images: Tensor) -> Tensor:
        waiting: nn.Conv2d | None = None
        for layer in self:
            if waiting is not None:
                images = folded_convolution(images, waiting, cast(FrozenBatchNorm, layer))
                waiting = None
            elif layer in self.folded:
                waiting = cast(nn.Conv2d, layer)
            else:
                images = layer(images)
        return images


def can_fold(first: nn.Module, second: nn.Module) -> bool:
    return type(first) is nn.Conv2d and first.padding_mode == "zeros" and isinstance(second, FrozenBatchNorm)


def folded_convolution(images: Tensor, convolution: nn.Conv2d, norm: FrozenBatchNorm) -> Tensor:
    """Convolve and normalise: (W∗x + b − μ)·γ/σ + β = (W·γ/σ)∗x + (b − μ)·γ/σ + β."""
    factor = norm.weight * norm.scale.flatten()
    centre = -norm.mean.flatten() if convolution.bias is None else convolution.bias - norm.mean.flatten()
    return F.conv2d(
        images,
        convolution.weight * factor.view(-1, 1, 1, 1),
        centre * factor + norm.bias,
        convolution.stride,
        convolution.padding,
        convolution.dilation,
        convolution.groups,
    )


def fold_batch_norm(model: nn.Module) -> nn.Module:
    """Copy a model with every evaluation-mode batch normalisation an affine map, folded where a convolution feeds it.

    Only layers that follow one another in a plain `nn.Sequential` are folded: there, nothing else sees what is between.
    """
    return replace_layers(freeze_batch_norm(model), fold_sequential)


def fold_sequential(module: nn.Module) -> nn.Module:
    return FoldedSequential(OrderedDict(module.named_children())) if type(module) is nn.Sequential else module
