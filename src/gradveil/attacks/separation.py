"""What entered a linear layer, image by image, from the gradient of its weight and bias.

The weight's gradient is a mixture (`mixtures`). It is taken apart in three ways, in this order:
- the layer is followed by ReLU, so the slopes of an image are zero where it is not active (SPEAR, `sparse_directions`);
- what enters comes out of ReLU, so the features themselves are zero at many places: the same test on the other factor.
  It works for the last layer as well, for one image fewer than there are classes;
- independent component analysis (Cocktail Party, Kariyappa et al., ICML 2023), then a fixed point: features tell slopes
  by the rest of the network, slopes tell features by the mixture.

A way is trusted if the features that it finds, fed to the rest of the network, have the slopes that it finds.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from gradveil.attacks.independent_components import find_components
from gradveil.attacks.labels import find_labels
from gradveil.attacks.mixtures import Mixture, Solved
from gradveil.attacks.sparse_directions import MOST, find_directions
from gradveil.attacks.spear import check_relu
from gradveil.errors import KnowledgeError
from gradveil.types import Task, Update

CERTAIN = 0.02
"""Features are exact if the slopes that they would have are as near as this, relative, to those that were found."""
ITERATIONS = 60
SETTLED = 1e-9


@dataclass(frozen=True, eq=False)
class Separated:
    """Features, images×inputs, their labels, how they were found, and how far off, relative, their slopes are."""

    features: Tensor
    labels: Tensor
    way: str
    error: float

    @property
    def exact(self) -> bool:
        return self.error < CERTAIN


class Rest:
    """The network from a linear layer on: which slopes the layer's outputs have for given inputs and labels."""

    def __init__(self, task: Task, layer: str, images: int) -> None:
        self.task, self.images = task, images
        self.model = copy.deepcopy(task.model).requires_grad_(False).eval()
        found = self.model.get_submodule(layer)
        assert isinstance(found, nn.Linear)
        self.layer = found
        self.device = found.weight.device

    def slopes(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return what each of N inputs, with its label, adds to the bias gradient of a batch, N×outputs."""
        outputs = self.layer(features.float().to(self.device)).requires_grad_()
        handle = self.layer.register_forward_hook(lambda *_: outputs)
        try:
            logits = self.model(torch.zeros(len(features), *self.task.shape, device=self.device))
        finally:
            handle.remove()
        # The loss is the mean over what it is given.
        total = self.task.loss(logits, labels.to(self.device)) * len(features)
        (slopes,) = torch.autograd.grad(total, outputs)
        shares: Tensor = slopes.double().cpu() / self.images
        return shares

    def compare(self, solved: Solved, known: Tensor | None) -> tuple[Tensor, float]:
        """Give each image the label that explains its slopes best, each known one once; and the largest error left."""
        kinds = torch.arange(self.task.classes) if known is None else torch.unique(known).cpu()
        count = len(solved.inputs)
        expected = self.slopes(solved.inputs.repeat_interleave(len(kinds), 0), kinds.repeat(count))
        found = solved.slopes.T[:, None]
        errors = torch.linalg.vector_norm(expected.view(count, len(kinds), -1) - found, dim=2)
        errors = (errors / torch.linalg.vector_norm(found, dim=2)).nan_to_num(1e30, 1e30)
        if known is None:
            places = errors.argmin(1)
        else:
            columns = torch.searchsorted(kinds, known.cpu())
            _, chosen = linear_sum_assignment(errors[:, columns].numpy())
            places = columns[torch.as_tensor(chosen)]
        return kinds[places], float(errors[torch.arange(count), places].max())


class Separator:
    """Takes the mixture at one layer of one update apart; up to `samples` sets of rows are tried in each sparse way."""

    def __init__(self, task: Task, update: Update, layer: str, samples: int) -> None:
        weight, bias = (update.tensors[f"{layer}.{kind}"] for kind in ("weight", "bias"))
        self.mixture = Mixture.of(weight, bias, update.images)
        self.rest = Rest(task, layer, update.images)
        self.layer, self.update, self.samples = layer, update, samples

    def separate(self, generator: torch.Generator) -> Separated:
        """Try one way after the other until one is exact; else return what the last one found."""
        found = None
        for way, directions in self.ways(generator):
            if directions.shape[1] == self.mixture.rank:
                found = self.judge(way, self.mixture.solve(directions))
                if found.exact:
                    return found
        assert found is not None
        for start in (found, self.start_from_labels()):
            better = self.iterate(start)
            if better.exact:
                return better
        return found

    def start_from_labels(self) -> Separated:
        """Begin at no features at all: with labels that differ, the slopes of an untrained network differ enough."""
        labels = find_labels(self.rest.task, self.update).cpu()
        return Separated(torch.zeros(len(labels), self.mixture.right.shape[1]).double(), labels, "labels", math.inf)

    def ways(self, generator: torch.Generator) -> Iterator[tuple[str, Tensor]]:
        """Find the columns of Q in one way after the other."""
        mixture = self.mixture
        product = mixture.left @ mixture.right
        if mixture.rank <= MOST and self.followed_by_relu():
            lengths = torch.linalg.vector_norm(product, dim=1)
            yield "sparse slopes", find_directions(mixture.left, lengths, self.accept, generator, self.samples)
        if mixture.rank <= MOST:
            # The rows of R have equal lengths here: rounding then is the same in all.
            scales = torch.linalg.vector_norm(mixture.right, dim=1)
            rows, lengths = (mixture.right / scales[:, None]).T, torch.linalg.vector_norm(product, dim=0)
            found = find_directions(
                rows, lengths, lambda some: self.accept(turn(some, scales)), generator, self.samples
            )
            yield "sparse features", turn(found, scales) if found.shape[1] == mixture.rank else found
        # Sources are rows of Xᵀ = Q⁻¹·R.
        yield "independent components", torch.linalg.inv(find_components(mixture.right, generator))

    def followed_by_relu(self) -> bool:
        try:
            check_relu(self.rest.task, self.layer)
        except KnowledgeError:
            return False
        return True

    def accept(self, directions: Tensor) -> bool:
        return self.judge("", self.mixture.solve(directions)).exact

    def judge(self, way: str, solved: Solved) -> Separated:
        """Compare what was found with what the rest of the network makes of it."""
        labels, error = self.rest.compare(solved, self.update.labels)
        return Separated(solved.inputs, labels, way, error)

    def iterate(self, start: Separated) -> Separated:
        """Go from features to slopes and back until nothing moves; return the start if that leads nowhere."""
        features = start.features
        for _ in range(ITERATIONS):
            slopes = self.rest.slopes(features, start.labels).T
            directions = torch.linalg.lstsq(self.mixture.left, slopes).solution
            following, problem = torch.linalg.solve_ex(directions, self.mixture.right)
            if int(problem) or not bool(following.isfinite().all()):
                return start
            moved = float((following - features).norm() / following.norm())
            features = following
            if moved < SETTLED:
                break
        slopes = self.rest.slopes(features, start.labels).T
        rebuilt = slopes @ features
        error = float((rebuilt - self.mixture.left @ self.mixture.right).norm() / rebuilt.norm())
        return Separated(features, start.labels, f"{start.way} and a fixed point", error)


def turn(directions: Tensor, scales: Tensor) -> Tensor:
    """Turn directions P of the features, Xᵀ = Pᵀ·R/scales, into those of the slopes, Q with Xᵀ = Q⁻¹·R."""
    turned: Tensor = torch.linalg.inv(directions.T / scales)
    return turned
