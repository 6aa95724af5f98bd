"""Batch normalisation without the state that `vmap` cannot share between runs, and layers that draw.

In evaluation mode it is the affine map that it computes: torch's own layer takes a slow path under `vmap` and keeps
second-order terms for statistics that do not move. In training mode it is normalisation by the statistics of the batch.
Parameter names stay `weight` and `bias`.
"""

import copy
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
"""The layers that normalise over a batch."""


class FrozenBatchNorm(nn.Module):
    """Apply the running statistics of `source`."""

    mean: Tensor
    scale: Tensor

    def __init__(self, source: nn.BatchNorm2d) -> None:
        super().__init__()
        assert source.running_mean is not None
        assert source.running_var is not None
        self.weight, self.bias = source.weight, source.bias
        self.register_buffer("mean", source.running_mean.view(-1, 1, 1).clone())
        self.register_buffer("scale", (source.running_var + source.eps).rsqrt().view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        normal = (images - self.mean) * self.scale
        return normal * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)


class BatchStatisticsNorm(nn.Module):
    """Normalise by the statistics of the batch and track none."""

    def __init__(self, source: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = source.weight, source.bias, source.eps

    def forward(self, images: Tensor) -> Tensor:
        return F.batch_norm(images, None, None, self.weight, self.bias, training=True, eps=self.eps)


def freeze_batch_norm(model: nn.Module) -> nn.Module:
    """Copy a model with every evaluation-mode batch normalisation that tracks statistics replaced by its affine map."""
    return replace_layers(copy.deepcopy(model), freeze_layer)


def forget_statistics(model: nn.Module) -> nn.Module:
    """Copy a model with every training-mode batch normalisation replaced by one that tracks no statistics."""
    return replace_layers(copy.deepcopy(model), forget_layer)


def freeze_layer(layer: nn.Module) -> nn.Module:
    if isinstance(layer, nn.BatchNorm2d) and not layer.training and layer.affine and layer.track_running_stats:
        return FrozenBatchNorm(layer)
    return layer


def forget_layer(layer: nn.Module) -> nn.Module:
    return BatchStatisticsNorm(layer) if isinstance(layer, BATCH_NORM) and layer.training else layer


def replace_layers(module: nn.Module, change: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """Change a module and, in place, everything inside it."""
    for name, child in module.named_children():
        setattr(module, name, replace_layers(child, change))
    return change(module)


def find_dropout(model: nn.Module) -> list[nn.Module]:
    """List the dropout layers that drop anything in training."""
    return [layer for layer in model.modules() if isinstance(layer, DROPOUT) and layer.p > 0]


def batch_dependent(model: nn.Module) -> list[str]:
    """Name the batch normalisations that use the statistics of the batch."""
    return [
        name
        for name, layer in model.named_modules()
        if isinstance(layer, BATCH_NORM) and (layer.training or not layer.track_running_stats)
    ]
