"""Pictures from features: images that a network turns into what is known to have entered one of its layers.

With public images a ridge regression from features to pixels gives a first picture. Then pixels move until the features
match; the total variation and the pull towards the first picture hold them.
"""

import logging
import math
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor, nn

from gradveil.attacks.descent import cosine_decay
from gradveil.attacks.optimisers import Adam
from gradveil.attacks.priors import Priors, variation_slope
from gradveil.attacks.starts import FAINT
from gradveil.errors import SettingsError
from gradveil.metrics import psnr
from gradveil.types import Batch, Task

log = logging.getLogger(__name__)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Candidates for ridge's λ, in units of the mean square length of an image's features."""
PUBLIC = 2000
"""As many public images are used at most."""
LEAST = 20
REHEARSED = 8
"""At least so many public images are rebuilt to choose how pictures are made."""
TINY = 1e-20


class FeatureMap:
    """What enters the layer called `layer` of a model, for images N×C×H×W; in batches of `size` if that matters."""

    def __init__(self, model: nn.Module, layer: str, size: int | None) -> None:
        self.model, self.layer, self.size = model, model.get_submodule(layer), size

    def __call__(self, pixels: Tensor) -> Tensor:
        """Compute the features of images that are one batch; differentiable in them."""
        seen: list[Tensor] = []
        handle = self.layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self.model(pixels)
        finally:
            handle.remove()
        return seen[0]

    def all(self, pixels: Tensor) -> Tensor:
        """Compute the features of many images, without slopes; those that make no whole batch are left out."""
        size = self.size or 50
        whole = len(pixels) if self.size is None else len(pixels) // size * size
        with torch.no_grad():
            return torch.cat([self(part) for part in torch.split(pixels[:whole], size)])


@dataclass(frozen=True, eq=False)
class PictureRegression:
    """A ridge regression from features to pixels, with its λ chosen on public images that it did not learn from."""

    features: Tensor
    images: Tensor

    @classmethod
    def of(cls, seen: FeatureMap, public: Batch) -> "PictureRegression":
        pixels = public.pixels()[:PUBLIC]
        features = seen.all(pixels)
        return cls(features, pixels[: len(features)])

    def without(self, count: int) -> "PictureRegression":
        """Leave the first images out."""
        return PictureRegression(self.features[count:], self.images[count:])

    def __call__(self, features: Tensor) -> Tensor:
        held = max(1, len(self.features) // 10)
        rest, truth = self.without(held), self.images[:held]
        errors = [float((rest.predict(self.features[:held], one) - truth).square().mean()) for one in RIDGES]
        return self.predict(features, RIDGES[errors.index(min(errors))])

    def predict(self, features: Tensor, ridge: float) -> Tensor:
        """Predict pictures, clamped to valid pixels."""
        centre, spread = self.features.mean(0), self.features.std(0)
        spread = spread.clamp(min=1e-3 * float(spread.median()) + TINY)
        known, asked = (((one - centre) / spread).clamp(-10, 10).double() for one in (self.features, features))
        squares = known @ known.T
        unit = float(squares.diagonal().mean())
        mean = self.images.double().mean(0)
        damped = squares / unit + ridge * torch.eye(len(known), dtype=torch.float64, device=known.device)
        weights = torch.linalg.solve(damped, (self.images.double() - mean).flatten(1))
        pixels = (asked @ known.T / unit) @ weights
        pictures: Tensor = (mean + pixels.view(-1, *mean.shape)).clamp(0, 1).float()
        return pictures


@final
@dataclass(frozen=True)
class FeatureMatching:
    """Move pixels until their features match.

    The weights are in units of the features' slope, as `Priors.relative` means it. The pull towards the first picture
    goes from `pull` to `last_pull` in equal ratios.
    """

    steps: int = 300
    learning_rate: float = 0.05
    priors: Priors = field(default_factory=lambda: Priors(total_variation=1.0, last_variation=0.3, relative=True))
    pull: float = 1.0
    last_pull: float = 0.1

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.learning_rate < math.inf:
            raise SettingsError(f"{self.steps} steps at rate {self.learning_rate}: both must be above 0")
        if not 0 < self.last_pull <= self.pull < math.inf:
            raise SettingsError(f"a pull from {self.pull} to {self.last_pull}: it must stay above 0 and not grow")

    def from_noise(self) -> "FeatureMatching":
        """Return the search for beginning at noise: the way is longer, so there are more and larger steps."""
        return replace(self, steps=2 * self.steps, learning_rate=4 * self.learning_rate)

    def __call__(
        self, task: Task, seen: FeatureMap, wanted: Tensor, first: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        """Find the pixels of images that are one batch, N×C×H×W; without a first picture begin at noise."""
        mean, std = (wanted.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
        noise = FAINT * torch.randn(len(wanted), *task.shape, generator=generator).to(wanted)
        anchor = noise if first is None else (first - mean) / std
        points, optimiser = anchor.clone(), Adam(anchor.flatten(1))
        power = wanted.square().sum(1).clamp(min=TINY)
        for step in range(self.steps):
            points.requires_grad_()
            gaps = (seen(points * std + mean) - wanted).square().sum(1) / power
            (slope,) = torch.autograd.grad(gaps.sum(), points)
            points = points.detach()
            slope = slope + self.prior(slope, points, None if first is None else anchor, step)
            rate = self.learning_rate * cosine_decay(step, self.steps)
            points = points + optimiser.move(slope.sign().flatten(1), rate).view_as(points)
            points = torch.minimum(torch.maximum(points, -mean / std), (1 - mean) / std)
        return (points * std + mean).clamp(0, 1)

    def prior(self, slope: Tensor, points: Tensor, anchor: Tensor | None, step: int) -> Tensor:
        """Add the slopes of the total variation and of the pull."""
        unit = slope.abs().flatten(1).mean(1).view(-1, 1, 1, 1)
        smooth = variation_slope(points[:, None])[:, 0]
        steepness = smooth.abs().flatten(1).mean(1).clamp(min=TINY).view(-1, 1, 1, 1)
        total: Tensor = self.priors.variation_weight(step, self.steps) * unit / steepness * smooth
        if anchor is None:
            return total
        weight = self.pull * (self.last_pull / self.pull) ** (step / self.steps)
        pulled: Tensor = total + 2 * weight * unit * (points - anchor)
        return pulled


@dataclass(frozen=True, eq=False)
class PictureMaker:
    """How features become pictures: a regression, a search from there, or both."""

    task: Task
    seen: FeatureMap
    search: FeatureMatching | None
    regression: PictureRegression | None

    def __call__(self, wanted: Tensor, generator: torch.Generator) -> Tensor:
        first = None if self.regression is None else self.regression(wanted)
        if self.search is None:
            assert first is not None
            return first
        return self.search(self.task, self.seen, wanted, first, generator)


def rehearse(
    task: Task, seen: FeatureMap, searches: tuple[FeatureMatching, ...], generator: torch.Generator
) -> PictureMaker:
    """Choose, on public images, between the regression alone and the searches; without public images the first search.

    The network decides what is best: deep features hold so little of an image that a search leads away from it.
    """
    size = seen.size or REHEARSED
    images = size * -(-REHEARSED // size)
    if task.public is None or len(task.public) < LEAST + images:
        return PictureMaker(task, seen, searches[0].from_noise(), None)
    regression = PictureRegression.of(seen, task.public)
    makers = [PictureMaker(task, seen, search, regression.without(images)) for search in (None, *searches)]
    parts = (torch.split(one[:images], size) for one in (regression.features, regression.images))
    groups = list(zip(*parts, strict=True))
    scores = []
    for maker in makers:
        pairs = [psnr(maker(features, generator), truth) for features, truth in groups]
        scores.append(float(torch.cat(pairs).mean()))
    log.info("rehearsed on %d public images: %s dB", images, ", ".join(f"{score:.1f}" for score in scores))
    return PictureMaker(task, seen, makers[scores.index(max(scores))].search, regression)
