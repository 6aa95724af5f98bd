"""The attacker's twin of the client: what would be released for images that are not known yet.

It is differentiable in the images, and computes many runs side by side. What it cannot know it leaves out by name.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from gradveil.client.optimisers import make_step_rule
from gradveil.client.update import draw_batches
from gradveil.gradients import (
    Recorder,
    Tensors,
    find_dropout,
    fold_batch_norm,
    forget_statistics,
    gradients_apart,
    loss_of_parameters,
    parameters_of,
)
from gradveil.losses import Loss
from gradveil.machine import lay_out
from gradveil.types import LocalTraining

Views = Callable[[Tensor], list[Tensor]]
"""Takes images, …×B×C×H×W, and returns pictures of them, each of the same shape."""
ALONE = 2
"""Up to this many runs take their gradients one by one: measured on three models, `vmap` pays from three runs on."""
UNKNOWN_ORDER = "the client's order of images is unknown: they are taken in their own order"
NO_DROPOUT = "the client's dropout draws are unknown: dropout is left out"


class Simulation:
    """Compute what clients who work as `local` says would release; the model given is left as it is.

    With several `participants` an update is the mean of theirs, and the images are theirs one after the other. `views`
    turns images into all the pictures of them that the model is fed at once.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        local: LocalTraining,
        shape: tuple[int, int, int],
        participants: int = 1,
        views: Views | None = None,
    ) -> None:
        self.loss, self.local, self.views = loss, local, views
        # In evaluation mode the mean of gradients is the gradient of all images together.
        self.apart = participants if local.takes_steps or local.mode == "train" else 1
        self.approximations = find_approximations(model, local)
        self.model = prepare(model, local)
        # After a local step every run has weights of its own. Under `vmap`, torch 2.13 then gives wrong gradients of
        # channels-last kernels for batches of one image.
        self.layout = lay_out(self.model, shape, channels_last=not local.takes_steps)
        self.parameters = {name: tensor for name, tensor in self.model.named_parameters() if tensor.requires_grad}
        self.recorder = Recorder()

    def __call__(self, images: Tensor, labels: Tensor) -> Tensors:
        """Return the update of each of T runs, T×B×C×H×W and T×B (or T×B×classes): every tensor gets a leading T."""
        if self.apart == 1:
            return self.updates(images, labels)
        images, labels = (part.reshape(-1, part.shape[1] // self.apart, *part.shape[2:]) for part in (images, labels))
        updates = self.updates(images, labels)
        return {name: tensor.view(-1, self.apart, *tensor.shape[1:]).mean(1) for name, tensor in updates.items()}

    def updates(self, images: Tensor, labels: Tensor) -> Tensors:
        """Return the update of each single client."""
        if not self.local.takes_steps:
            images, labels = self.feed(images, labels, 1)
        if not self.local.takes_steps and len(images) > ALONE:
            return gradients_apart(self.model, self.loss, images, labels)
        if not self.local.takes_steps:
            runs = [self.gradient(*run) for run in zip(images, labels, strict=True)]
            return {name: torch.stack([run[name] for run in runs]) for name in self.parameters}
        return dict(vmap(self.change, randomness="different")(images, labels))

    def feed(self, images: Tensor, labels: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
        """Put all views of a batch, whose images lie along `dimension`, one after the other."""
        if self.views is None:
            return images, labels
        pictures = self.views(images)
        return torch.cat(pictures, dimension), torch.cat([labels] * len(pictures), dimension)

    def flat(self, images: Tensor, labels: Tensor, names: Mapping[str, int]) -> Tensor:
        """Return the updates laid out flat, T×P, in the order of `names`; a search calls this at every step."""
        order = tuple(names)
        return self.recorder(partial(self.lay_flat, order), order, images, labels)

    def lay_flat(self, order: Sequence[str], images: Tensor, labels: Tensor) -> Tensor:
        updates = self(images, labels)
        return torch.cat([updates[name].flatten(1) for name in order], 1)

    def gradient(self, images: Tensor, labels: Tensor) -> Tensors:
        """Take the gradient of one run's images without the detour over `vmap`."""
        loss = self.loss(self.model(images.contiguous(memory_format=self.layout)), labels)
        parameters = list(self.parameters.values())
        slopes = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True, materialize_grads=True)
        return dict(zip(self.parameters, slopes, strict=True))

    def change(self, images: Tensor, labels: Tensor) -> Tensors:
        """Take the local steps of one run and return the change of its weights."""
        slope_of = grad(loss_of_parameters(self.model, self.loss))
        before = parameters_of(self.model)
        parameters, rule = before, make_step_rule(self.local)
        for places in draw_batches(replace(self.local, shuffle=False), len(images), False, torch.Generator()):
            parameters = rule.step(parameters, slope_of(parameters, *self.feed(images[places], labels[places], 0)))
        return {name: value - before[name] for name, value in parameters.items()}


def prepare(model: nn.Module, local: LocalTraining) -> nn.Module:
    """Copy the model in the client's mode, in the form that is fastest to differentiate twice, without dropout."""
    copied = copy.deepcopy(model).train(local.mode == "train")
    for layer in find_dropout(copied):
        layer.eval()
    return fold_batch_norm(copied) if local.mode == "eval" else forget_statistics(copied)


def find_approximations(model: nn.Module, local: LocalTraining) -> tuple[str, ...]:
    """Name what the simulation leaves out."""
    unknown_order = local.takes_steps and local.shuffle
    unknown_draws = local.mode == "train" and bool(find_dropout(model))
    return (UNKNOWN_ORDER,) * unknown_order + (NO_DROPOUT,) * unknown_draws
