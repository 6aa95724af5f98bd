"""What batch normalisations saw: their known statistics, and how far those of candidate images are from them."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from gradveil.client import Simulation
from gradveil.errors import KnowledgeError
from gradveil.gradients import freeze_batch_norm
from gradveil.types import LocalTraining, Task, Update


@dataclass(frozen=True, eq=False)
class Statistics:
    """Mean and variance per channel at the input of one batch normalisation."""

    mean: Tensor
    variance: Tensor


def known_statistics(model: nn.Module, update: Update) -> dict[str, Statistics]:
    """Find, by layer, what the batch normalisations saw.

    A client that trains in training mode and sends its buffers gives the statistics of its own batches away: its work
    moved the running ones towards them. Otherwise the model's running statistics stand for any image.
    """
    known = {
        name: read_statistics(name, layer, update)
        for name, layer in model.named_modules()
        if isinstance(layer, nn.BatchNorm2d) and layer.track_running_stats
    }
    if not known:
        raise KnowledgeError(
            "the model has no batch normalisation with statistics: choose an attack without that prior"
        )
    if not shows_statistics(model, update) and is_untouched(model):
        raise KnowledgeError("the statistics of the model's batch normalisation are still those it was made with")
    return known


def shows_statistics(model: nn.Module, update: Update) -> bool:
    """Tell whether buffers that came with an update say more than those that everyone has."""
    known = dict(model.named_buffers())
    sent = update.buffers or {}
    return any(name in known and not torch.equal(tensor, known[name]) for name, tensor in sent.items())


def is_untouched(model: nn.Module) -> bool:
    """Tell whether no batch normalisation has ever seen a batch."""
    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm2d)]
    return all(layer.num_batches_tracked is None or int(layer.num_batches_tracked) == 0 for layer in layers)


def read_statistics(name: str, layer: nn.BatchNorm2d, update: Update) -> Statistics:
    """Read the statistics of one layer from the buffers of an update, if they moved, or from the layer itself."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    mean, variance = layer.running_mean.detach(), layer.running_var.detach()
    sent = update.buffers or {}
    if f"{name}.running_mean" in sent and f"{name}.running_var" in sent:
        after_mean, after_variance = sent[f"{name}.running_mean"], sent[f"{name}.running_var"]
        if not torch.equal(after_mean, mean):
            share = moved_share(layer, update.local.count_steps(update.images) or 1)
            mean = mean + (after_mean - mean) / share
            variance = (variance + (after_variance - variance) / share).clamp(min=0)
    return Statistics(mean, variance)


def moved_share(layer: nn.BatchNorm2d, batches: int) -> float:
    """Return how far so many batches move the running statistics towards their own, weighted mean: 1 is all the way."""
    if layer.momentum is None:
        before = 0 if layer.num_batches_tracked is None else int(layer.num_batches_tracked)
        return batches / (before + batches)
    return layer.momentum if batches == 1 else 1 - (1 - layer.momentum) ** batches


class StatisticsGap:
    """Compare the statistics of candidate images with the known ones, in a model that works in the client's mode."""

    def __init__(self, task: Task, local: LocalTraining, known: Mapping[str, Statistics]) -> None:
        self.known = known
        self.by_batch = local.mode == "train"
        # A folded model shows nothing of what enters its batch normalisations.
        if self.by_batch:
            self.model = Simulation(task.model, task.loss, local, task.shape).model
        else:
            self.model = freeze_batch_norm(task.model)

    def __call__(self, fed: Tensor) -> Tensor:
        """Return the gap of each of T×B×C×H×W, averaged over layers."""
        if self.by_batch:
            # Layers normalise by the batch that they get, so each run has to come alone.
            return torch.cat([self.compare(run[None]) for run in fed])
        return self.compare(fed)

    def compare(self, fed: Tensor) -> Tensor:
        gaps = [
            (entering.mean(2) - self.known[name].mean).norm(dim=1)
            + (entering.var(2) - self.known[name].variance).norm(dim=1)
            for name, entering in self.watch(fed).items()
        ]
        return torch.stack(gaps).mean(0)

    def watch(self, fed: Tensor) -> dict[str, Tensor]:
        """Run the model on T×B×C×H×W and return what enters each batch normalisation, T×channels×values."""
        seen: dict[str, Tensor] = {}

        def hook(name: str) -> RemovableHandle:
            def note(_: nn.Module, inputs: tuple[Tensor]) -> None:
                entering = inputs[0].view(*fed.shape[:2], *inputs[0].shape[1:])
                seen[name] = entering.transpose(1, 2).flatten(2)

            handle: RemovableHandle = self.model.get_submodule(name).register_forward_pre_hook(note)
            return handle

        handles = [hook(name) for name in self.known]
        try:
            self.model(fed.flatten(0, 1))
        finally:
            for handle in handles:
                handle.remove()
        return seen
