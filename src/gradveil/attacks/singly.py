"""What attacks share that read updates off directly, one after the other: checks, the loop, and the result."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gradveil.attacks.base import Progress, layers_draw_like
from gradveil.attacks.ranking import Comparison
from gradveil.errors import KnowledgeError
from gradveil.types import Reconstruction, Update

Recover = Callable[[Update, torch.Generator], Reconstruction]
"""Attack one update, with draws from a generator."""


def attack_singly(
    updates: Sequence[Update],
    generators: Sequence[torch.Generator],
    recover: Recover,
    progress: Progress | None = None,
) -> list[Reconstruction]:
    """Attack updates one after the other; layers that draw, draw from a copy of the update's generator."""
    results = []
    for done, (update, generator) in enumerate(zip(updates, generators, strict=True), 1):
        with layers_draw_like(generator):
            results.append(recover(update, generator))
        if progress is not None:
            progress(done, len(updates))
    return results


def is_one_step(update: Update) -> bool:
    """Tell whether a weight change is one plain step on all images: the gradient times a known number."""
    local = update.local
    plain = local.optimiser == "sgd" and local.momentum == 0 and local.weight_decay == 0
    return plain and local.count_steps(update.images) == 1 and local.size_of(update.images) >= update.images


def as_one_gradient(update: Update) -> Update:
    """Turn the weight change of one plain step back into the gradient; other weight changes are refused."""
    if not update.local.takes_steps:
        return update
    if not is_one_step(update):
        raise KnowledgeError("the update is of several local steps: its rows mix images; a gradient is needed")
    tensors = {name: tensor / -update.local.learning_rate for name, tensor in update.tensors.items()}
    return replace(update, tensors=tensors, local=replace(update.local, steps=None, epochs=None, batch_size=None))


def require_tensors(update: Update, names: Collection[str]) -> None:
    """Refuse an update without the tensors that images are read off."""
    missing = sorted(set(names) - set(update.tensors))
    if missing:
        raise KnowledgeError(f"the update lacks {', '.join(missing)}: both are needed to read images off")


def conclude(comparison: Comparison, update: Update, images: Tensor, labels: Tensor, steps: int = 0) -> Reconstruction:
    """Make the result of images that were found; one whose loss or pixels are not finite is a failure."""
    loss = comparison.matching_loss(update, images, labels)
    sound = math.isfinite(loss) and bool(images.isfinite().all())
    return Reconstruction(
        images,
        labels,
        loss,
        "ok" if sound else "failed",
        ((steps, loss),),
        reason="" if sound else "the images that were recovered, or their matching loss, are not finite",
        approximations=comparison.simulation(update).approximations,
    )
