"""The privacy score S_pri (Gao et al., 2021, Eq. 5–7): how soon the gradient of a guess looks like the true one."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError
from gradveil.gradients import choose_gradients
from gradveil.losses import CrossEntropy, Loss
from gradveil.models import Normalise
from gradveil.rng import generator
from gradveil.scores.base import block_size, check_choice, compute_blocks
from gradveil.scores.policy_draws import PRIVACY_STREAM, transform_images
from gradveil.scores.quadrature import find_quadrature
from gradveil.scores.similarity import Form, compare, multiply
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels

Start = Literal["uniform", "normal"]
MEMORY = 2**29
"""Bytes of start-point gradients that are kept; beyond that they are computed again."""


class PrivacyScore:
    """Score policies on a model and images; holds what does not depend on the policy.

    The guess goes from noise x0 (i = 0) to the transformed image T(x) (i = 1) in a straight line; the score of an image
    is the area under the cosine between the gradients of the two, lower is more private. `form` "global" takes the
    cosine of the whole gradients (the paper's Eq. 5), "layerwise" the mean over parameter tensors (its code). The model
    is used in evaluation mode.

    `loss` is that of the training that the weights come from, plain cross-entropy unless given. The score of an image
    depends on the seed, the policy's function and the image's place among `images` only.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Tensor,
        labels: Tensor,
        *,
        form: Form = "layerwise",
        quadrature: str = "trapezoid-21",
        start: Start = "uniform",
        loss: Loss | None = None,
        seed: int = 0,
    ) -> None:
        check_choice("form of GradSim", form, get_args(Form))
        check_choice("start", start, get_args(Start))
        if len(Batch(images, labels)) == 0:
            raise SettingsError("a privacy score of no images: give at least one")
        self.form, self.quadrature, self.start, self.seed = form, find_quadrature(quadrature), start, seed
        first = next(model.parameters())
        self.images, self.labels = images.to(first.device), labels.to(first.device)
        self.starts = draw_starts(model, images.shape, start, seed).to(first)
        self.gradients = choose_gradients(model, loss or CrossEntropy(), self.starts, self.labels)
        self.kept: dict[range, list[Tensor]] = {}

    @property
    def block(self) -> int:
        """Count the neighbouring images that are computed together."""
        return block_size(self.quadrature.gradients)

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return S_pri of the images at `places`, all of them unless given, float64."""
        return self.area(self.curves(policy, self.quadrature.nodes, places))

    def area(self, curves: Tensor) -> Tensor:
        """Turn GradSim at the nodes, images×nodes, into S_pri."""
        return (curves * torch.tensor(self.quadrature.weights, dtype=torch.float64)).sum(1)

    def curves(
        self, policy: Policy | PolicySet, points: Sequence[float], places: Sequence[int] | None = None
    ) -> Tensor:
        """Return GradSim at each of the points i in [0, 1], float64 images×points."""
        check_points(points)
        size = block_size(1 + sum(0 < point < 1 for point in points))
        return compute_blocks(
            places, len(self.images), size, lambda members: self.block_curves(policy, points, members)
        )

    def block_curves(self, policy: Policy | PolicySet, points: Sequence[float], members: range) -> Tensor:
        """Compute GradSim for one block of images, float64 images×points."""
        targets = to_pixels(transform_images(policy, self.images, members, self.seed, PRIVACY_STREAM)).to(self.starts)
        inner = [point for point in points if 0 < point < 1]
        images = interpolate(self.starts[members.start : members.stop], targets, [*inner, 1.0])
        labels = self.labels[members.start : members.stop].repeat_interleave(images.shape[1])
        gradients = (part.view(*images.shape[:2], -1) for part in self.gradients.walk(images.flatten(0, 1), labels))
        starts = self.start_gradients(members) if 0.0 in points else None
        similarity = compare(multiply(gradients, starts), self.form)
        columns = {0.0: -2, 1.0: -1} | {point: column for column, point in enumerate(inner)}
        return similarity[:, [columns[float(point)] for point in points]]

    def start_gradients(self, members: range) -> list[Tensor]:
        """Return the gradients at the start points of one block, computed once if memory allows."""
        if members in self.kept:
            return self.kept[members]
        chosen = slice(members.start, members.stop)
        gradients = [part.contiguous() for part in self.gradients.walk(self.starts[chosen], self.labels[chosen])]
        held = sum(part.nbytes for group in (*self.kept.values(), gradients) for part in group)
        if held <= MEMORY:
            self.kept[members] = gradients
        return gradients


class PrivacyRiseScore:
    """Score policies by S_pri less the similarity that the start point has already."""

    def __init__(self, score: PrivacyScore) -> None:
        self.privacy = score

    @property
    def block(self) -> int:
        """Count the neighbouring images that are computed together."""
        return max(self.privacy.block, block_size(1))

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return the rise on the images at `places`, all of them unless given, float64."""
        return self.privacy.score(policy, places) - self.privacy.curves(policy, [0.0], places)[:, 0]


def interpolate(starts: Tensor, targets: Tensor, points: Sequence[float]) -> Tensor:
    """Go from each start to its target, images×points×C×H×W."""
    shares = torch.tensor(points, dtype=starts.dtype, device=starts.device).view(1, -1, 1, 1, 1)
    return shares * targets.unsqueeze(1) + (1 - shares) * starts.unsqueeze(1)


def draw_starts(model: nn.Module, shape: torch.Size, start: Start, seed: int) -> Tensor:
    """Draw the noise that each guess begins with: uniform over pixels, or normal in the model's normalised space."""
    draw = torch.rand if start == "uniform" else torch.randn
    noise = torch.stack(
        [draw(shape[1:], generator=generator(seed, "privacy start", place)) for place in range(shape[0])]
    )
    normalise = find_normalisation(model)
    if start == "uniform" or normalise is None:
        return noise
    return normalise.mean.cpu() + normalise.std.cpu() * noise


def find_normalisation(model: nn.Module) -> Normalise | None:
    """Find the layer that normalises; a model without one takes pixels as they are."""
    return next((module for module in model.modules() if isinstance(module, Normalise)), None)


def check_points(points: Sequence[float]) -> None:
    wrong = [point for point in points if not 0 <= point <= 1]
    if wrong:
        raise SettingsError(f"point {wrong[0]} of the way from noise to image: give points from 0 to 1")
