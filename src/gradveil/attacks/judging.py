"""One yardstick for the results of different attacks: how well their gradient matches the released one."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gradveil.attacks.distances import Gradients, cosine, lay_flat, sizes_of
from gradveil.attacks.release import known_release
from gradveil.client import local_update
from gradveil.types import Batch, Reconstruction, Task, Update


def matching_loss(task: Task, update: Update, fed: Tensor, labels: Tensor) -> float:
    """Measure 1 − cosine between the released update and that of the images `fed`, B×C×H×W, to the model.

    If the attacker knows how updates are released, ours is first brought to that.
    """
    again = local_update(task.model, task.loss, Batch(fed, labels), update.local_steps)
    released, ours = (add_target(one.tensors) for one in (update, again))
    sizes = sizes_of(released)
    candidate, seen = lay_flat(ours, sizes), lay_flat(released, sizes)
    distance, _ = cosine(known_release(task, seen)(candidate, sizes, softness=0), seen, sizes)
    return float(distance)


def add_target(tensors: Mapping[str, Tensor]) -> Gradients:
    """Give every tensor a leading T of one."""
    return {name: tensor[None] for name, tensor in tensors.items()}


def judge(task: Task, update: Update, result: Reconstruction) -> float:
    """Measure a result by the common yardstick; a failed one is infinitely far."""
    if result.status != "ok":
        return math.inf
    loss = matching_loss(task, update, result.images if result.fed is None else result.fed, result.labels)
    return loss if math.isfinite(loss) else math.inf


def best_of(results: Sequence[Reconstruction], losses: Sequence[float]) -> int:
    """Find the place of the best result: the lowest loss, the first of equals."""
    return min(range(len(results)), key=lambda place: losses[place])


def labels_agree(found: Tensor, true: Tensor) -> float:
    """Give the share of labels found, whatever their order.

    >>> labels_agree(torch.tensor([1, 1, 2, 5]), torch.tensor([1, 2, 2, 5]))
    0.75
    """
    size = int(max(found.max(), true.max())) + 1
    counts = [torch.bincount(labels, minlength=size) for labels in (found, true)]
    return float(torch.minimum(*counts).sum()) / len(true)
