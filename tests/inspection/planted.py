"""Models planted to leak, as the papers describe it, for `gradveil inspect` to find."""

import torch
from torch import Tensor, nn

from gradveil.models import ModelSpec

MIDDLE = 1e-3


def undo_normalisation(layer: nn.Linear, spec: ModelSpec, raw: Tensor, offset: Tensor) -> None:
    """Set a first layer so that it computes raw·pixels + offset, though it sees normalised pixels."""
    channels, height, width = spec.shape
    mean, std = (torch.tensor(values).view(-1, 1, 1).expand(spec.shape).flatten() for values in (spec.mean, spec.std))
    assert raw.shape[1] == channels * height * width
    with torch.no_grad():
        layer.weight.copy_(raw * std)
        assert layer.bias is not None
        layer.bias.copy_(offset + raw @ mean)


def plant_imprint(layer: nn.Linear, spec: ModelSpec, images: Tensor, direction: Tensor | None = None) -> None:
    """Let every neuron measure the brightness, or a `direction`, with thresholds at quantiles (Fowl et al.)."""
    count, size = layer.weight.shape
    one = torch.full((size,), 1 / size) if direction is None else direction / direction.norm()
    measured = images.flatten(1) @ one
    bins = torch.quantile(measured, torch.linspace(0.02, 0.98, count))
    bins += torch.linspace(0, MIDDLE, count)  # few images leave equal quantiles
    undo_normalisation(layer, spec, one.repeat(count, 1), -bins)


def plant_traps(layer: nn.Linear, spec: ModelSpec, scale: float, source: torch.Generator) -> None:
    """Let neurons fire for few images: half of a row negative, the other half the same, scaled (Boenisch et al.)."""
    count, size = layer.weight.shape
    rows = torch.zeros(count, size)
    for row in rows:
        order = torch.randperm(size, generator=source)
        half = size // 2
        values = torch.randn(half, generator=source).abs() * 0.1
        row[order[:half]] = -values
        row[order[half : 2 * half]] = scale * values[torch.randperm(half, generator=source)]
    undo_normalisation(layer, spec, rows, torch.zeros(count))


def plant_fishing(head: nn.Linear, target: int = 0) -> None:
    """Let only images of the target class have a gradient in front of the last layer (Wen et al., ICML 2022).

    The head's other rows are all but zero, and the target's bias makes its class improbable.
    """
    with torch.no_grad():
        head.weight.mul_(1e-6)
        head.weight[target] = 0.1
        assert head.bias is not None
        head.bias[target] = -20.0
