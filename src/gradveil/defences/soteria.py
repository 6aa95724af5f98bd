"""Soteria: perturb the representation that the last layer's gradient shows (Sun et al., 2021)."""

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import jvp, vjp, vmap

from gradveil.defences.base import Compute, Hook
from gradveil.defences.grammar import Parametrised
from gradveil.defences.knowledge import ZEROES, KnownRelease, Released, hide_zeroes
from gradveil.errors import SettingsError
from gradveil.gradients import Tensors, freeze_batch_norm
from gradveil.losses import Loss
from gradveil.rng import global_state_from
from gradveil.types import Batch

CHUNK = 512
"""How many rows of Jacobians, one for each feature and image, are held at once."""


@dataclass(frozen=True, repr=False)
class Soteria(Parametrised):
    """Hide the `percent` % of features that tell most about the image from the gradient of the last linear layer.

    These are the ones with the smallest ‖∂r/∂x‖ / |r|: a small change of the feature r would need a large change of the
    image x. Their columns of the weight's gradient are set to zero, as in the authors' code; for a batch the ratios are
    averaged over its images. That takes a backward pass for each feature. Differs from Sun et al.: for several images
    ‖∂r/∂x‖ is estimated from `probes` random directions, all features at once, without which training would be
    out of reach; with 0 probes it is exact there too.
    """

    percent: float
    probes: int = 4

    name: ClassVar[str] = "soteria"
    hooks: ClassVar[tuple[Hook, ...]] = ("compute",)
    used: ClassVar[str] = ZEROES
    allowed: ClassVar[str] = (
        "write soteria:P with the percentage of features to hide, 0 ≤ P < 100, and :probes=K with 0 ≤ K ≤ 10000 to "
        "choose those of a batch by K random directions (0: exactly), such as soteria:40"
    )

    def is_allowed(self) -> bool:
        return 0 <= self.percent < 100 and 0 <= self.probes <= 10000

    def compute(self, inner: Compute) -> Compute:
        def perturbed(model: nn.Module, loss: Loss, batch: Batch, generator: torch.Generator) -> Tensors:
            tensors = inner(model, loss, batch, generator)
            name, layer = last_linear(model)
            hidden = int(layer.in_features * self.percent / 100)
            if hidden == 0 or len(batch) == 0:
                return tensors
            with global_state_from(generator):
                probes = self.probes if len(batch) > 1 else 0
                telling = sensitivity(model, batch.pixels(), probes).argsort(stable=True)[:hidden]
            weight = tensors[f"{name}.weight"].clone()
            weight[:, telling] = 0
            return {**tensors, f"{name}.weight": weight}

        return perturbed

    def known_release(self, known: KnownRelease, released: Released) -> KnownRelease:
        return hide_zeroes(known, released)


def last_linear(model: nn.Module) -> tuple[str, nn.Linear]:
    """Find the last linear layer and its name."""
    found = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
    if not found:
        raise SettingsError(f"{type(model).__name__} has no linear layer: choose a model with one for this defence")
    return found[-1]


def sensitivity(model: nn.Module, pixels: Tensor, probes: int = 0) -> Tensor:
    """Take ‖∂r/∂x‖ / |r| of every feature, averaged over the images in which it is not 0; infinite if it is in all.

    A feature that is 0 tells nothing of its image. Averages rank features as sums do, but for ReLU's zeros: with a sum,
    one image in which a feature rests would rule it out, and in a large batch that is nearly every feature. They are
    taken in evaluation mode, in which no image touches the features of another.
    """
    frozen = freeze_batch_norm(copy.deepcopy(model).eval())
    features, slopes = estimate_slopes(frozen, pixels, probes) if probes else take_slopes(frozen, pixels)
    active = features != 0
    ratios = torch.where(active, slopes / features.abs(), 0.0).sum(0) / active.sum(0)
    return ratios.nan_to_num(nan=torch.inf).detach()


def estimate_slopes(model: nn.Module, pixels: Tensor, probes: int) -> tuple[Tensor, Tensor]:
    """Return the features, N×F, and estimate ‖∂r/∂x‖: over normal directions v, (∂r/∂x · v)² is ‖∂r/∂x‖² on average."""
    features = torch.zeros(0)
    total = torch.zeros(())
    for _ in range(probes):
        features, change = jvp(lambda images: features_of(model, images), (pixels,), (torch.randn_like(pixels),))  # type: ignore[misc]
        total = total + change.square()
    return features, (total / probes).sqrt()


def take_slopes(model: nn.Module, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features and ‖∂r/∂x‖ of each, both N×F."""
    features, pull = vjp(lambda images: features_of(model, images), pixels)  # type: ignore[misc]
    count = features.shape[1]
    size = max(1, CHUNK // len(pixels))

    def norms(direction: Tensor) -> Tensor:
        (slopes,) = pull(direction.expand_as(features))
        lengths: Tensor = slopes.flatten(1).norm(dim=1)
        return lengths

    eye = torch.eye(count, device=pixels.device)
    slopes = torch.cat([vmap(norms)(eye[start : start + size]) for start in range(0, count, size)])
    return features, slopes.T


def features_of(model: nn.Module, images: Tensor) -> Tensor:
    """Return what the last linear layer is fed for these images, N×F."""
    seen: list[Tensor] = []

    def note(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0])

    handle = last_linear(model)[1].register_forward_pre_hook(note)
    try:
        model(images)
    finally:
        handle.remove()
    return seen[0]
