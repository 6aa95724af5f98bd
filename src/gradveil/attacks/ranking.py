"""One measure for the results of different attacks: how well their update matches the released one."""

import math

import torch
from torch import Tensor

from gradveil.attacks.distances import cosine, lay_flat, sizes_of
from gradveil.attacks.likelihood import image_surprise, update_surprise
from gradveil.attacks.observation import describe_release, simulate
from gradveil.attacks.priors import total_variation
from gradveil.client import Simulation
from gradveil.defences import known_deviation, shows_draws
from gradveil.types import LocalTraining, Reconstruction, Task, Update


class Comparison:
    """Measure results on one task; every kind of local training is simulated by one model."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.simulations: dict[LocalTraining, Simulation] = {}

    def simulation(self, update: Update) -> Simulation:
        """Return the simulation of the clients behind an update."""
        if shows_draws(self.task.known_defences):
            return simulate(self.task, update)
        if update.local not in self.simulations:
            self.simulations[update.local] = simulate(self.task, update)
        return self.simulations[update.local]

    def matching_loss(self, update: Update, fed: Tensor, labels: Tensor) -> float:
        """Measure 1 − cosine between the released update and that of the images `fed`, B×C×H×W, to the model.

        If the attacker knows how updates are released, ours is first brought to that.
        """
        tensors = {name: tensor[None] for name, tensor in update.tensors.items()}
        sizes = sizes_of(tensors)
        flat = lay_flat(tensors, sizes)
        ours = self.simulation(update).flat(fed[None], labels[None], sizes).detach()
        known = describe_release(self.task, update, flat, sizes)
        distance, _ = cosine(known(ours, sizes, softness=0), flat, sizes)
        return float(distance)

    def loss_of(self, update: Update, result: Reconstruction) -> float:
        """Measure a result by its matching loss; a failed one is infinitely far."""
        if result.status != "ok":
            return math.inf
        loss = self.matching_loss(update, transformed_of(result), result.labels)
        return loss if math.isfinite(loss) else math.inf

    def rank(self, update: Update, result: Reconstruction, loss: float) -> float:
        """Return how unlikely a result with this loss is: the loss itself, unless noise is known to be in the update.

        Then the lowest loss is that of whoever took the noise for a picture. What counts is how well the update is
        explained, given how strong the noise is, and how much the explanation looks like an image.
        """
        deviation = known_deviation(self.task.known_defences, update.images, self.task.participants)
        if deviation == 0 or not math.isfinite(loss):
            return loss
        released = torch.cat([tensor.flatten() for tensor in update.tensors.values()])[None]
        mean, std = (released.new_tensor(values).view(-1, 1, 1) for values in (self.task.mean, self.task.std))
        images = ((transformed_of(result) - mean) / std)[None]
        fit = update_surprise(released.new_tensor([loss]), released, deviation)
        return float(fit + image_surprise(total_variation(images), images.numel()))


def matching_loss(task: Task, update: Update, fed: Tensor, labels: Tensor) -> float:
    """Measure 1 − cosine between the released update and that of the images `fed`, B×C×H×W, to the model."""
    return Comparison(task).matching_loss(update, fed, labels)


def transformed_of(result: Reconstruction) -> Tensor:
    """Return what the model was fed, as the result has it."""
    return result.images if result.transformed is None else result.transformed
