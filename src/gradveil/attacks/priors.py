"""What natural images look like, as penalties; each gives one number for each of T leading targets."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from gradveil.errors import KnowledgeError
from gradveil.gradients import FrozenBatchNorm


def total_variation(images: Tensor) -> Tensor:
    """Mean absolute difference between neighbours down and across, averaged over each leading T of T×B×C×H×W."""
    down = (images[..., 1:, :] - images[..., :-1, :]).abs().flatten(1).mean(1)
    across = (images[..., 1:] - images[..., :-1]).abs().flatten(1).mean(1)
    return down + across


def variation_slope(images: Tensor) -> Tensor:
    """Give the slope of the total variation, T×B×C×H×W, without a graph; 0 between equal neighbours."""
    down = (images[..., 1:, :] - images[..., :-1, :]).sign_()
    across = (images[..., 1:] - images[..., :-1]).sign_()
    down /= down[0].numel()
    across /= across[0].numel()
    slope = torch.zeros_like(images)
    slope[..., 1:, :] += down
    slope[..., :-1, :] -= down
    slope[..., 1:] += across
    slope[..., :-1] -= across
    return slope


def energy(images: Tensor) -> Tensor:
    """Mean square of normalised images: how far they are from the mean colour."""
    return images.flatten(1).square().mean(1)


def disagreement(images: Tensor, targets: Tensor) -> Tensor:
    """Mean squared distance of each run from the mean of the runs of its own target (Yin et al., 2021).

    Differs from GradInversion: the runs are averaged pixel by pixel, without registering them to one another first.
    """
    same = (targets[:, None] == targets[None, :]).to(images)
    centres = (same / same.sum(1, keepdim=True)) @ images.detach().flatten(1)
    return (images.flatten(1) - centres).square().mean(1)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Mean and variance per channel at the input of one batch normalisation."""

    mean: Tensor
    variance: Tensor


def known_statistics(model: nn.Module, buffers: Mapping[str, Tensor] | None) -> dict[str, Statistics]:
    """Find, by layer, what the batch normalisations saw.

    A client that sends its buffers after one training step gives its own batch away: the running mean moved from the
    old one towards the batch's by the momentum. Otherwise the model's running statistics stand for any image.
    """
    found = {
        name: read_statistics(name, layer, buffers or {})
        for name, layer in model.named_modules()
        if isinstance(layer, nn.BatchNorm2d) and layer.track_running_stats
    }
    if not found:
        raise KnowledgeError(
            "the model has no batch normalisation with statistics: choose an attack without that prior"
        )
    if not shows_statistics(model, buffers) and untouched(model):
        raise KnowledgeError("the statistics of the model's batch normalisation are still those it was made with")
    return found


def shows_statistics(model: nn.Module, buffers: Mapping[str, Tensor] | None) -> bool:
    """Tell whether buffers that came with an update say more than those that everyone has."""
    known = dict(model.named_buffers())
    return any(name in known and not torch.equal(tensor, known[name]) for name, tensor in (buffers or {}).items())


def untouched(model: nn.Module) -> bool:
    """Tell whether no batch normalisation has ever seen a batch."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    return all(layer.num_batches_tracked is None or int(layer.num_batches_tracked) == 0 for layer in layers)


def read_statistics(name: str, layer: nn.BatchNorm2d, buffers: Mapping[str, Tensor]) -> Statistics:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    mean, variance = layer.running_mean.detach(), layer.running_var.detach()
    momentum = 0.1 if layer.momentum is None else layer.momentum
    if f"{name}.running_mean" in buffers and f"{name}.running_var" in buffers:
        after_mean, after_variance = buffers[f"{name}.running_mean"], buffers[f"{name}.running_var"]
        if not torch.equal(after_mean, mean):
            mean = mean + (after_mean - mean) / momentum
            variance = (variance + (after_variance - variance) / momentum).clamp(min=0)
    return Statistics(mean, variance)


def statistics_gap(model: nn.Module, images: Tensor, known: Mapping[str, Statistics]) -> Tensor:
    """Compare the statistics of each target's images, T×B×C×H×W, with the known ones, averaged over layers.

    `model` is one whose batch normalisation is frozen, so that its layers keep their names.
    """
    seen: dict[str, Tensor] = {}
    layers = dict(model.named_modules())

    def watch(name: str) -> RemovableHandle:
        def note(_: nn.Module, inputs: tuple[Tensor]) -> None:
            entering = inputs[0].view(*images.shape[:2], *inputs[0].shape[1:])
            seen[name] = entering.transpose(1, 2).flatten(2)

        handle: RemovableHandle = layers[name].register_forward_pre_hook(note)
        return handle

    handles = [watch(name) for name in known if isinstance(layers[name], FrozenBatchNorm)]
    try:
        model(images.flatten(0, 1))
    finally:
        for handle in handles:
            handle.remove()
    gaps = [
        (seen[name].mean(2) - known[name].mean).norm(dim=1) + (seen[name].var(2) - known[name].variance).norm(dim=1)
        for name in seen
    ]
    return torch.stack(gaps).mean(0)
