"""Exact recovery of whole batches from a fully-connected first layer with ReLU (SPEAR, Dimitrov et al., NeurIPS 2024).

With z_i = W·x_i + b, the gradient of W is Δ·Xᵀ and that of b is Δ·1, one column of Δ and X for each image. Its rank is
the number of images. The singular value decomposition gives L·R with Δ = L·Q and Xᵀ = Q⁻¹·R for an unknown small Q.
ReLU makes the columns of Δ sparse, so that sampled rows of L tell the columns of Q (`sparse_directions`).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from gradveil.attacks.analytic import FirstLinear, first_linear, input_of
from gradveil.attacks.base import Attack, Progress, make_failure
from gradveil.attacks.mixtures import Mixture, count_at
from gradveil.attacks.ranking import Comparison
from gradveil.attacks.singly import as_one_gradient, attack_singly, conclude, require_tensors
from gradveil.attacks.sparse_directions import MOST, TOLERANCES, find_directions, zeros_of
from gradveil.errors import KnowledgeError
from gradveil.gradients import gradients_apart
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
AGREEING = 0.998
"""With this share of outputs active where they should be, the directions are those of the images."""


@final
@dataclass(frozen=True)
class Spear(Attack):
    """Recover all images of a batch at once; up to `samples` sets of rows are tried.

    Each image depends on all directions, so if one of them is wrong all images suffer; the matching loss tells.
    """

    samples: int = 2**17

    @property
    def needs(self) -> tuple[str, ...]:
        return (
            "the model",
            "a gradient of one step",
            "a fully-connected first layer with ReLU",
            f"at most {MOST} images",
        )

    def check(self, task: Task, updates: Sequence[Update]) -> None:
        layer = first_linear(task)
        check_relu(task, layer.name)
        for update in updates:
            require_tensors(as_one_gradient(update), layer.tensors)
            if update.images > MOST:
                raise KnowledgeError(f"the update is of {update.images} images: sampling is feasible up to {MOST}")

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,
    ) -> list[Reconstruction]:
        self.check(task, updates)
        layer, comparison = first_linear(task), Comparison(task)
        return attack_singly(
            updates,
            generators,
            lambda update, generator: self.recover(comparison, update, layer, generator),
            progress,
        )

    def recover(
        self, comparison: Comparison, released: Update, layer: FirstLinear, generator: torch.Generator
    ) -> Reconstruction:
        """Recover one batch."""
        task = comparison.task
        rank = count_at(task, released, layer.name)
        update = as_one_gradient(released)
        weight, bias = (update.tensors[name] for name in layer.tensors)
        log.info("the gradient of '%s' has rank %d, which is the number of images", layer.name, rank)
        if rank != update.images:
            return make_failure(task, update, f"the gradient has rank {rank}, not that of {update.images} images")
        mixture = Mixture.of(weight, bias, rank)
        directions = self.find_directions(task, layer, mixture, generator)
        if directions.shape[1] < rank:
            found = f"{directions.shape[1]} of {rank}"
            return make_failure(task, update, f"found {found} directions in {self.samples} samples")
        parts = mixture.solve(directions)
        images = to_images(task, parts.inputs, layer.normalised).to(update.device)
        labels = match_labels(task, layer, images, parts.slopes, update.labels)
        return conclude(comparison, update, images, labels)

    def find_directions(self, task: Task, layer: FirstLinear, mixture: Mixture, generator: torch.Generator) -> Tensor:
        """Sample until the directions, one for each image, agree with what the layer does: rank×found."""
        linear = task.model.get_submodule(layer.name)
        assert isinstance(linear, nn.Linear)
        return find_directions(
            mixture.left,
            torch.linalg.vector_norm(mixture.left @ mixture.right, dim=1),
            lambda directions: agreement(mixture, linear, directions) > AGREEING,
            generator,
            self.samples,
        )


def agreement(mixture: Mixture, layer: nn.Linear, directions: Tensor) -> float:
    """Return the share of outputs that are active exactly where they have a slope, over all images."""
    solved = mixture.solve(directions)
    weight, bias = (part.detach().double().cpu() for part in (layer.weight, layer.bias))
    active = (solved.inputs @ weight.T + bias).T > 0
    return float((active != zeros_of(mixture.left, directions, TOLERANCES[1])).double().mean())


def check_relu(task: Task, name: str) -> None:
    """Make sure, with a probe, that what leaves the first layer enters the next one through ReLU and nothing else."""
    linear = [found for found, layer in task.model.named_modules() if isinstance(layer, nn.Linear)]
    following = linear[linear.index(name) + 1 :]
    if following:
        device = next(task.model.parameters()).device
        probe = torch.rand(2, *task.shape, generator=torch.Generator().manual_seed(0)).to(device)
        before = input_of(task.model, name, probe)
        layer = task.model.get_submodule(name)
        expected = functional.relu(layer(before)).detach()
        entering = input_of(task.model, following[0], probe)
        if entering.shape == expected.shape and torch.allclose(entering, expected, atol=1e-5):
            return
    raise KnowledgeError("the first layer is not followed by ReLU and a linear layer: its gradient is not sparse")


def to_images(task: Task, inputs: Tensor, normalised: bool) -> Tensor:
    """Turn what entered the layer into images."""
    pixels = inputs.view(-1, *task.shape)
    if normalised:
        mean, std = (pixels.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
        pixels = pixels * std + mean
    return pixels.float().clamp(0, 1)


def match_labels(task: Task, layer: FirstLinear, images: Tensor, slopes: Tensor, known: Tensor | None) -> Tensor:
    """Give each image the label that explains its slopes best; those that are `known` are each given once."""
    kinds = torch.arange(task.classes, device=images.device) if known is None else torch.unique(known)
    costs = []
    for image, own in zip(images, slopes.T, strict=True):
        repeated = image.expand(len(kinds), 1, *image.shape)
        guesses = gradients_apart(task.model, task.loss, repeated, kinds[:, None])[f"{layer.name}.bias"]
        # The loss is the mean over the batch.
        costs.append(torch.linalg.vector_norm(guesses.detach().double().cpu() / len(images) - own, dim=1))
    every = torch.stack(costs)
    if known is None:
        return kinds[every.argmin(1).to(kinds.device)]
    places = (known[:, None] == kinds).int().argmax(1).cpu()
    _, columns = linear_sum_assignment(every[:, places].numpy())
    return known[torch.as_tensor(columns, device=known.device)]
