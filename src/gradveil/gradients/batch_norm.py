"""Batch normalisation and dropout in training mode, without the state that `vmap` cannot share between runs."""

import copy

from torch import Tensor, nn
from torch.nn import functional as F

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class BatchStatisticsNorm(nn.Module):
    """Normalise by the statistics of the batch and track none; parameter names stay `weight` and `bias`."""

    def __init__(self, source: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = source.weight, source.bias, source.eps

    def forward(self, images: Tensor) -> Tensor:
        return F.batch_norm(images, None, None, self.weight, self.bias, training=True, eps=self.eps)


def forget_statistics(model: nn.Module) -> nn.Module:
    """Copy a model with every training-mode batch normalisation replaced by one that tracks no statistics."""
    return _replace(copy.deepcopy(model))


def _replace(module: nn.Module) -> nn.Module:
    if isinstance(module, BATCH_NORM) and module.training:
        return BatchStatisticsNorm(module)
    for name, child in module.named_children():
        setattr(module, name, _replace(child))
    return module


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
