"""Put what was seen of every layer together, and say what it means."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.data import Progress, load, silent
from gradveil.inspection.isolation import Isolation, measure_isolation, worst
from gradveil.inspection.weights import OddWeights, look_at_weights
from gradveil.losses import Loss
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import to_pixels

BATCHES = 4
IMAGES = 16


@dataclass(frozen=True)
class LayerFindings:
    """What was seen of one parameter tensor; `reasons` is empty if it is like those of honest models."""

    name: str
    shape: tuple[int, ...]
    weights: OddWeights | None
    isolation: Isolation | None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """One thing that is measured of every parameter tensor; above `limit` it is odd, and `reason` says so."""

    name: str
    limit: float
    reason: str
    percent: bool
    read: Callable[[LayerFindings], float | None]

    def show(self, value: float) -> str:
        """Write a value of the measure."""
        return f"{value:.0%}" if self.percent else f"{value:.3g}"


def of_weights(read: Callable[[OddWeights], float]) -> Callable[[LayerFindings], float | None]:
    return lambda layer: None if layer.weights is None else read(layer.weights)


MEASURES = (
    Measure(
        "D-SNR: the largest gradient of an image ÷ all others of a batch",
        1.0,
        "one image outweighs all others of a batch (D-SNR {})",
        False,
        lambda layer: None if layer.isolation is None else layer.isolation.d_snr,
    ),
    Measure(
        "neurons that hear one image of a batch alone",
        0.35,
        "{} of the neurons hear one image of a batch alone",
        True,
        lambda layer: None if layer.weights is None or layer.isolation is None else layer.isolation.alone,
    ),
    Measure(
        "rows that are scaled copies of others",
        0.25,
        "{} of the rows are scaled copies of others, as in an imprint",
        True,
        of_weights(lambda seen: seen.copies),
    ),
    Measure(
        "biases in strict order (1: yes)",
        0.5,
        "the biases are in strict order, as the thresholds of an imprint",
        False,
        of_weights(lambda seen: float(seen.ladder)),
    ),
    Measure(
        "rows with one value throughout",
        0.25,
        "{} of the rows have one value throughout",
        True,
        of_weights(lambda seen: seen.constant),
    ),
    Measure(
        "rows with halves that mirror each other",
        0.05,
        "{} of the rows have halves that mirror each other, as trap weights",
        True,
        of_weights(lambda seen: seen.mirrored),
    ),
    Measure(
        "rows of zeros",
        0.5,
        "{} of the rows are zero, so that few have all effect",
        True,
        of_weights(lambda seen: seen.zero),
    ),
    Measure(
        "length of a row, median",
        50.0,
        "its rows have a median length of {}",
        False,
        of_weights(lambda seen: seen.norm),
    ),
)
"""The limits stand far above what honest models reach: docs/inspect.md has the figures."""
LIMITS = (
    "This looks for patterns that known attacks plant (imprints, trap weights, single images that outweigh a batch). "
    "Nothing odd found is no proof: a plant that was trained to look ordinary, as SEER's is, is not seen, and code in "
    "a model of your own is not looked at."
)
"""What an inspection does not see; printed with every one."""


@dataclass(frozen=True)
class Inspection:
    """What was seen of a model, tensor by tensor."""

    layers: tuple[LayerFindings, ...]

    def largest(self, measure: Measure) -> tuple[float, str] | None:
        """Find the largest value of a measure, and the tensor that has it."""
        read = [(measure.read(layer), layer.name) for layer in self.layers]
        return max(((value, name) for value, name in read if value is not None), default=None)

    @property
    def odd(self) -> tuple[LayerFindings, ...]:
        return tuple(layer for layer in self.layers if layer.reasons)

    @property
    def verdict(self) -> str:
        """Say it in one sentence."""
        if not self.odd:
            return "Nothing odd found."
        names = ", ".join(layer.name for layer in self.odd[:3]) + (" and others" if len(self.odd) > 3 else "")
        return f"Odd: {names}. Do not train this model on private images before you know why."

    def to_record(self) -> dict[str, Any]:
        """Return the findings as they stand in JSON; an infinite D-SNR becomes null."""
        return {
            "odd": bool(self.odd),
            "verdict": self.verdict,
            "limits": LIMITS,
            "layers": [layer_record(layer) for layer in self.layers],
        }


def layer_record(layer: LayerFindings) -> dict[str, Any]:
    record = asdict(layer)
    if layer.isolation is not None and not math.isfinite(layer.isolation.d_snr):
        record["isolation"]["d_snr"] = None
    return record


def inspect_model(
    model: nn.Module, loss: Loss, images: Tensor, seed: int = 0, progress: Progress = silent
) -> Inspection:
    """Look at the weights, and at the gradients of `images`, N×C×H×W in [0, 1], in batches of 16.

    The labels are drawn at random: a well-trained model is sure of most true labels, and one hard image then outweighs
    all others in an honest model too.
    """
    with torch.no_grad():
        classes = model.eval()(images[:1]).shape[1]
    labels = torch.randint(classes, (len(images),), generator=generator(seed, "inspection", "labels"))
    batches = []
    for first in range(0, len(images), IMAGES):
        part = slice(first, first + IMAGES)
        batches.append(measure_isolation(model, loss, images[part], labels[part]))
        progress("taking gradients", min(first + IMAGES, len(images)), len(images))
    isolation = without_the_output(worst(batches), model, classes)
    parameters = dict(model.named_parameters())
    return Inspection(
        tuple(
            judge(name, parameter, bias_of(name, parameters), isolation.get(name))
            for name, parameter in parameters.items()
        )
    )


def without_the_output(isolation: Mapping[str, Isolation], model: nn.Module, classes: int) -> dict[str, Isolation]:
    """Leave the neurons of the output out: in any model, the only image of a class is alone in the row of its class."""
    outputs = {name for name, parameter in model.named_parameters() if parameter.shape[:1] == (classes,)}
    return {name: replace(seen, alone=0.0) if name in outputs else seen for name, seen in isolation.items()}


def bias_of(name: str, parameters: Mapping[str, Tensor]) -> Tensor | None:
    """Find the bias that belongs to a weight."""
    return parameters.get(f"{name.removesuffix('weight')}bias") if name.endswith("weight") else None


def judge(name: str, parameter: Tensor, bias: Tensor | None, isolation: Isolation | None) -> LayerFindings:
    """Compare one tensor with what honest models show."""
    weights = look_at_weights(parameter, bias) if parameter.dim() > 1 else None
    layer = LayerFindings(name, tuple(parameter.shape), weights, isolation)
    values = [(measure, measure.read(layer)) for measure in MEASURES]
    odd = [(measure, value) for measure, value in values if value is not None and value > measure.limit]
    return replace(layer, reasons=tuple(measure.reason.format(measure.show(value)) for measure, value in odd))


def choose_images(spec: ModelSpec, data: str | None, seed: int = 0, root: Path | None = None) -> Tensor:
    """Take images to try a model on: of `data`, or of the bundled sample, brought to the model's shape."""
    chosen = load(data or "fashion-mnist-sample", root if data else None).test.images
    order = torch.randperm(len(chosen), generator=generator(seed, "inspection", "images"))[: BATCHES * IMAGES]
    channels, height, width = spec.shape
    pixels = F.interpolate(to_pixels(chosen[order]), (height, width), mode="bilinear", antialias=True).clamp(0, 1)
    if pixels.shape[1] == channels:
        return pixels
    return pixels.mean(1, keepdim=True).expand(-1, channels, -1, -1).contiguous()
