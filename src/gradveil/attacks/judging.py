"""One yardstick for the results of different attacks: how well their gradient matches the released one."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from gradveil.attacks.distances import Gradients, cosine, lay_flat, sizes_of
from gradveil.attacks.likelihood import image_surprise, update_surprise
from gradveil.attacks.priors import total_variation
from gradveil.client import Simulation
from gradveil.defences import Released, known_deviation, known_release
from gradveil.types import Reconstruction, Task, Update


def matching_loss(task: Task, update: Update, fed: Tensor, labels: Tensor) -> float:
    """Measure 1 − cosine between the released update and that of the images `fed`, B×C×H×W, to the model.

    If the attacker knows how updates are released, ours is first brought to that.
    """
    released = add_target(update.tensors)
    sizes = sizes_of(released)
    seen = lay_flat(released, sizes)
    simulation = Simulation(task.model, task.loss, update.local, task.shape)
    ours = simulation.flat(fed[None], labels[None], sizes).detach()
    known = known_release(task.known_defences, Released(seen, sizes, task.model, update.images), task.participants)
    distance, _ = cosine(known(ours, sizes, softness=0), seen, sizes)
    return float(distance)


def add_target(tensors: Mapping[str, Tensor]) -> Gradients:
    """Give every tensor a leading T of one."""
    return {name: tensor[None] for name, tensor in tensors.items()}


def judge(task: Task, update: Update, result: Reconstruction) -> float:
    """Measure a result by the common yardstick; a failed one is infinitely far."""
    if result.status != "ok":
        return math.inf
    loss = matching_loss(task, update, fed_of(result), result.labels)
    return loss if math.isfinite(loss) else math.inf


def fed_of(result: Reconstruction) -> Tensor:
    """Give what the model was fed, as the result has it."""
    return result.images if result.fed is None else result.fed


def rank(task: Task, update: Update, result: Reconstruction, loss: float) -> float:
    """Say how unlikely a result with this loss is: the loss itself, unless noise is known to be in the update.

    Then the lowest loss is that of whoever took the noise for a picture. What counts is how well the update is
    explained, given how strong the noise is, and how much the explanation looks like an image.
    """
    deviation = known_deviation(task.known_defences, update.images, task.participants)
    if deviation == 0 or not math.isfinite(loss):
        return loss
    released = torch.cat([tensor.flatten() for tensor in update.tensors.values()])[None]
    mean, std = (released.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
    images = ((fed_of(result) - mean) / std)[None]
    fit = update_surprise(released.new_tensor([loss]), released, deviation)
    return float(fit + image_surprise(total_variation(images), images.numel()))
