"""The privacy score S_pri (Gao et al., 2021, Eq. 5–7): how soon the gradient of a guess looks like the true one."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models import Normalise
from gradveil.rng import generator
from gradveil.scores.draws import transform_places
from gradveil.scores.gradients import choose_gradients
from gradveil.scores.quadrature import find_quadrature
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels

Form = Literal["layerwise", "global"]
Start = Literal["uniform", "normal"]
EPSILON = 1e-8
ROWS = 24
"""About how many images are differentiated together: more are no faster, and no longer fit the cache."""
MEMORY = 2**29
"""Bytes of start-point gradients that are kept; beyond that they are computed again."""


class PrivacyScore:
    """Score policies on a model and images; holds what does not depend on the policy.

    The guess goes from noise x0 (i = 0) to the transformed image T(x) (i = 1) in a straight line; the score of an image
    is the area under the cosine between the gradients of the two, lower is more private. `form` "global" takes the
    cosine of the whole gradients (the paper's Eq. 5), "layerwise" the mean over parameter tensors (its code). The model
    is used in evaluation mode.

    The score of an image depends on the seed, the policy's function and the image's place among `images` only: never on
    which other places are asked for. To that end images are always computed in the same groups of `block`
    neighbours; ask for whole groups where you can, for the rest of a group is computed and dropped.
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
        seed: int = 0,
    ) -> None:
        check_choice("form of GradSim", form, get_args(Form))
        check_choice("start", start, get_args(Start))
        if len(Batch(images, labels)) == 0:
            raise SettingsError("a privacy score of no images: give at least one")
        self.form, self.quadrature, self.start, self.seed = form, find_quadrature(quadrature), start, seed
        self.images, self.labels = images, labels
        self.starts = draw_starts(model, images, start, seed)
        self.gradients = choose_gradients(model, self.starts, labels)
        self.kept: dict[range, list[Tensor]] = {}

    @property
    def block(self) -> int:
        """Tell how many neighbouring images are computed together."""
        return block_size(self.quadrature.gradients)

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Give S_pri of the images at `places`, all of them unless given, float64."""
        weights = torch.tensor(self.quadrature.weights, dtype=torch.float64)
        return (self.curves(policy, self.quadrature.nodes, places) * weights).sum(1)

    def curves(
        self, policy: Policy | PolicySet, points: Sequence[float], places: Sequence[int] | None = None
    ) -> Tensor:
        """Give GradSim at each of the points i in [0, 1], float64 images×points."""
        wanted = list(range(len(self.images)) if places is None else places)
        check_places(wanted, len(self.images))
        size = block_size(1 + sum(0 < point < 1 for point in points))
        found = torch.empty(len(wanted), len(points), dtype=torch.float64)
        for block in sorted({place // size for place in wanted}):
            members = range(block * size, min((block + 1) * size, len(self.images)))
            rows = [(row, place - members.start) for row, place in enumerate(wanted) if place in members]
            into, out_of = (list(numbers) for numbers in zip(*rows, strict=True))
            found[into] = self.block_curves(policy, points, members)[out_of]
        return found

    def block_curves(self, policy: Policy | PolicySet, points: Sequence[float], members: range) -> Tensor:
        """Compute GradSim for one group of images, float64 images×points."""
        targets = to_pixels(transform_places(policy, self.images, members, self.seed, "privacy draw"))
        inner = [point for point in points if 0 < point < 1]
        images = interpolate(self.starts[members.start : members.stop], targets, [*inner, 1.0])
        labels = self.labels[members.start : members.stop].repeat_interleave(images.shape[1])
        tensors = (g.view(*images.shape[:2], -1) for g in self.gradients.walk(images.flatten(0, 1), labels))
        starts = self.start_gradients(members) if 0.0 in points else None
        products = stack_products(tensors, starts)
        similarity = self.similarity(*products)
        columns = {0.0: -2, 1.0: -1} | {point: column for column, point in enumerate(inner)}
        return similarity[:, [columns[float(point)] for point in points]]

    def similarity(self, dots: Tensor, lengths: Tensor) -> Tensor:
        """Turn products with the target, images×points×tensors with the target last, into cosines."""
        if self.form == "global":
            dots, lengths = dots.sum(-1, keepdim=True), lengths.square().sum(-1, keepdim=True).sqrt()
        lengths = lengths.clamp_min(EPSILON)
        return (dots / (lengths * lengths[:, -1:])).mean(-1)

    def start_gradients(self, members: range) -> list[Tensor]:
        """Give the gradients at the start points of one group, computed once if memory allows."""
        if members in self.kept:
            return self.kept[members]
        chosen = slice(members.start, members.stop)
        found = [g.contiguous() for g in self.gradients.walk(self.starts[chosen], self.labels[chosen])]
        held = sum(g.nbytes for group in (*self.kept.values(), found) for g in group)
        if held <= MEMORY:
            self.kept[members] = found
        return found


def stack_products(tensors: Iterator[Tensor], starts: list[Tensor] | None) -> tuple[Tensor, Tensor]:
    """Multiply each gradient with the target's, the last of its image, parameter tensor by parameter tensor.

    Gives products and lengths, float64 images×points×tensors; the start point, if there is one, is put before the
    target.
    """
    dots, lengths = [], []
    for number, found in enumerate(tensors):
        target = found[:, -1]
        dot, length = torch.einsum("npd,nd->np", found, target), found.norm(dim=2)
        if starts is not None:
            start = starts[number]
            dot = insert(dot, (start * target).sum(1))
            length = insert(length, start.norm(dim=1))
        dots.append(dot.double())
        lengths.append(length.double())
    return torch.stack(dots, -1), torch.stack(lengths, -1)


def insert(rows: Tensor, column: Tensor) -> Tensor:
    return torch.cat([rows[:, :-1], column[:, None], rows[:, -1:]], 1)


def interpolate(starts: Tensor, targets: Tensor, points: Sequence[float]) -> Tensor:
    """Go from each start to its target, images×points×C×H×W."""
    shares = torch.tensor(points, dtype=starts.dtype, device=starts.device).view(1, -1, 1, 1, 1)
    return shares * targets.unsqueeze(1) + (1 - shares) * starts.unsqueeze(1)


def draw_starts(model: nn.Module, images: Tensor, start: Start, seed: int) -> Tensor:
    """Draw the noise that each guess begins with: uniform over pixels, or normal in the model's normalised space."""
    sources = [generator(seed, "privacy start", place) for place in range(len(images))]
    shape = images.shape[1:]
    if start == "uniform":
        return torch.stack([torch.rand(shape, generator=source) for source in sources]).to(images.device)
    noise = torch.stack([torch.randn(shape, generator=source) for source in sources]).to(images.device)
    normalise = find_normalisation(model)
    return noise if normalise is None else normalise.mean + normalise.std * noise


def find_normalisation(model: nn.Module) -> Normalise | None:
    """Find the layer that normalises; a model without one takes pixels as they are."""
    return next((module for module in model.modules() if isinstance(module, Normalise)), None)


def block_size(gradients: int) -> int:
    """Choose how many images make up about `ROWS` gradients: a power of two, so that rounds of images divide well."""
    return 1 << max(0, (ROWS // gradients).bit_length() - 1)


def check_choice(kind: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)


def check_places(places: Sequence[int], count: int) -> None:
    wrong = [place for place in places if not 0 <= place < count]
    if wrong:
        raise SettingsError(f"image {wrong[0]} of {count}: give places from 0 to {count - 1}")
