"""Soteria: perturb the representation that the last layer's gradient shows (Sun et al., 2021)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap

from gradveil.client import Tensors
from gradveil.defences.base import Compute
from gradveil.defences.grammar import Parametrised
from gradveil.errors import SettingsError
from gradveil.rng import global_state_from
from gradveil.types import Batch, Loss

CHUNK = 512
"""How many rows of Jacobians, one for each feature and image, are held at once."""


@dataclass(frozen=True, repr=False)
class Soteria(Parametrised):
    """Hide the `percent` % of features that tell most about the image from the gradient of the last linear layer.

    These are the ones with the smallest ‖∂r/∂x‖ / |r|: a small change of the feature r would need a large change of the
    image x. Their columns of the weight's gradient are set to zero, as in the authors' code; for a batch the ratios are
    summed over its images. It takes one backward pass for each feature.
    """

    percent: float

    name: ClassVar[str] = "soteria"
    allowed: ClassVar[str] = "write soteria:P with the percentage of features to hide, 0 ≤ P < 100, such as soteria:40"

    def is_allowed(self) -> bool:
        return 0 <= self.percent < 100

    def compute(self, inner: Compute) -> Compute:
        def perturbed(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
            tensors = inner(model, loss, batch, generator)
            name, layer = last_linear(model)
            hidden = int(layer.in_features * self.percent / 100)
            if hidden == 0 or len(batch) == 0:
                return tensors
            with global_state_from(generator):
                telling = sensitivity(model, layer, batch.pixels()).argsort(stable=True)[:hidden]
            weight = tensors[f"{name}.weight"].clone()
            weight[:, telling] = 0
            return {**tensors, f"{name}.weight": weight}

        return perturbed


def last_linear(model: nn.Module) -> tuple[str, nn.Linear]:
    """Find the last linear layer and its name."""
    found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    if not found:
        raise SettingsError(f"{type(model).__name__} has no linear layer: choose a model with one for this defence")
    return found[-1]


def sensitivity(model: nn.Module, layer: nn.Linear, pixels: Tensor) -> Tensor:
    """Take ‖∂r/∂x‖ / |r| of every feature, summed over the images; a feature that is 0 tells nothing: infinite."""
    features, pull = vjp(lambda images: features_of(model, layer, images), pixels)  # type: ignore[misc]
    count = features.shape[1]
    size = max(1, CHUNK // len(pixels))

    def norms(direction: Tensor) -> Tensor:
        (slopes,) = pull(direction.expand_as(features))
        lengths: Tensor = slopes.flatten(1).norm(dim=1)
        return lengths

    eye = torch.eye(count, device=pixels.device)
    slopes = torch.cat([vmap(norms)(eye[start : start + size]) for start in range(0, count, size)])
    ratios: Tensor = (slopes.T / features.abs()).nan_to_num(nan=torch.inf)
    return ratios.sum(0).detach()


def features_of(model: nn.Module, layer: nn.Linear, images: Tensor) -> Tensor:
    """Give what the layer is fed for these images in evaluation mode, N×F."""
    seen: list[Tensor] = []
    training = model.training

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0])

    handle = layer.register_forward_pre_hook(note)
    try:
        model.eval()(images)
    finally:
        model.train(training)
        handle.remove()
    return seen[0]
