"""Batch normalisation in evaluation mode, written as the affine map that it is.

torch's own layer takes a slow path under `vmap` and keeps second-order terms for statistics that do not move.
"""

import copy

from torch import Tensor, nn


class FrozenBatchNorm(nn.Module):
    """Apply the running statistics of `source`; parameter names stay `weight` and `bias`."""

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


def freeze_batch_norm(model: nn.Module) -> nn.Module:
    """Copy a model with every evaluation-mode batch normalisation that tracks statistics replaced by its affine map."""
    return _replace(copy.deepcopy(model))


def _replace(module: nn.Module) -> nn.Module:
    if isinstance(module, nn.BatchNorm2d) and not module.training and module.affine and module.track_running_stats:
        return FrozenBatchNorm(module)
    for name, child in module.named_children():
        setattr(module, name, _replace(child))
    return module
