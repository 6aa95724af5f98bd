"""Exact recovery of whole batches from a fully-connected first layer with ReLU (SPEAR, Dimitrov et al., NeurIPS 2024).

With z_i = W·x_i + b, the gradient of W is Δ·Xᵀ and that of b is Δ·1, one column of Δ and X for each image. Its rank is
the number of images. The singular value decomposition gives L·R with Δ = L·Q and Xᵀ = Q⁻¹·R for an unknown small Q.
ReLU makes the columns of Δ sparse: a column of Q is orthogonal to the rows of L where its image is not active. So rows
are sampled, one fewer than there are images; the vector orthogonal to them is a column of Q if it makes L·q sparse.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from gradveil.attacks.analytic import FirstLinear, first_linear, input_of
from gradveil.attacks.base import Attack, Progress, layers_draw_like, make_failure
from gradveil.attacks.ranking import Comparison
from gradveil.errors import KnowledgeError
from gradveil.gradients import gradients_apart
from gradveil.types import Reconstruction, Task, Update

log = logging.getLogger(__name__)
ROUNDING = 3e-6
"""Singular values below this share of the largest are those of float32's rounding."""
TOLERANCES = (1e-3, 1e-4, 1e-5)
"""Entries of a direction below this share of the largest count as zero: at first, when it is fitted, and at last."""
SPARSE = 0.1
"""The least share of zeros in a direction that may be one of an image."""
SAME = 0.999
AGREEING = 0.998
"""With this share of outputs active where they should be, the directions are those of the images."""
MOST = 20
"""Sampling takes about 2^images draws."""
CHUNK = 4096
SHORTEST = (0.25, 0.5, 1.0)
"""Rows are sampled from these shares of the shortest ones, in turn."""


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
            if update.local.takes_steps:
                raise KnowledgeError("the update is of several local steps: its rows mix images; a gradient is needed")
            if not {f"{layer.name}.weight", f"{layer.name}.bias"} <= set(update.tensors):
                raise KnowledgeError(f"the update lacks the weight or the bias of '{layer.name}': both are needed")
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
        results = []
        for done, (update, generator) in enumerate(zip(updates, generators, strict=True), 1):
            with layers_draw_like(generator):
                results.append(self.recover(comparison, update, layer, generator))
            if progress is not None:
                progress(done, len(updates))
        return results

    def recover(
        self, comparison: Comparison, update: Update, layer: FirstLinear, generator: torch.Generator
    ) -> Reconstruction:
        """Recover one batch."""
        task = comparison.task
        weight, bias = (update.tensors[f"{layer.name}.{kind}"].double().cpu() for kind in ("weight", "bias"))
        rank = count_images(weight)
        log.info("the gradient of '%s' has rank %d, which is the number of images", layer.name, rank)
        if rank != update.images:
            return make_failure(task, update, f"the gradient has rank {rank}, not that of {update.images} images")
        model_layer = task.model.get_submodule(layer.name)
        assert isinstance(model_layer, nn.Linear)
        batch = Factors.of(weight, bias, model_layer, rank)
        directions = find_directions(batch, generator, self.samples)
        if directions.shape[1] < rank:
            found = f"{directions.shape[1]} of {rank}"
            return make_failure(task, update, f"found {found} directions in {self.samples} samples")
        parts = batch.solve(directions)
        images = to_images(task, parts.inputs, layer.normalised).to(update.device)
        labels = match_labels(task, layer, images, parts.slopes, update.labels)
        loss = comparison.matching_loss(update, images, labels)
        sound = math.isfinite(loss) and bool(images.isfinite().all())
        reason = "" if sound else "the images that were recovered, or their matching loss, are not finite"
        return Reconstruction(
            images,
            labels,
            loss,
            "ok" if sound else "failed",
            ((0, loss),),
            reason=reason,
            approximations=comparison.simulation(update).approximations,
        )


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


def count_images(weight: Tensor) -> int:
    """Read the number of images off the gradient of a linear layer's weight, outputs×inputs: its rank.

    It is a lower bound if images or their activations repeat, or if there are as many images as outputs or inputs.
    """
    values = torch.linalg.svdvals(weight.double())
    return int((values > ROUNDING * values[0]).sum()) if float(values[0]) > 0 else 0


@dataclass(frozen=True, eq=False)
class Solved:
    """The inputs of the layer, images×inputs, and the slopes at its outputs, outputs×images."""

    inputs: Tensor
    slopes: Tensor


@dataclass(frozen=True, eq=False)
class Factors:
    """The gradient of the weight as L, outputs×rank, times R, rank×inputs; that of the bias; and the layer itself."""

    left: Tensor
    right: Tensor
    bias: Tensor
    layer: nn.Linear

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor, layer: nn.Linear, rank: int) -> "Factors":
        left, values, right = torch.linalg.svd(weight, full_matrices=False)
        return cls(left[:, :rank], values[:rank, None] * right[:rank], bias, layer)

    def solve(self, directions: Tensor) -> Solved:
        """Give the directions their lengths, with Δ·1 = bias gradient, and solve for the inputs."""
        slopes = self.left @ directions
        scales = torch.linalg.lstsq(slopes, self.bias[:, None]).solution[:, 0]
        return Solved(torch.linalg.solve(directions * scales, self.right), slopes * scales)

    def agreement(self, directions: Tensor) -> float:
        """Return the share of outputs that are active exactly where they have a slope, over all images."""
        solved = self.solve(directions)
        weight, bias = (part.detach().double().cpu() for part in (self.layer.weight, self.layer.bias))
        active = (solved.inputs @ weight.T + bias).T > 0
        return float((active != zeros_of(self.left, directions, TOLERANCES[1])).double().mean())


def find_directions(batch: Factors, generator: torch.Generator, samples: int) -> Tensor:
    """Sample rows until the sparsest directions, one for each image, agree with what the layer does: rank×found."""
    left = batch.left
    rank = left.shape[1]
    if rank == 1:
        return left.new_ones(1, 1)
    # A row of zeros belongs to an output that no image activates: it says nothing. A short row is one that few images
    # activate: sets of such rows are orthogonal to some image's direction far more often.
    lengths = torch.linalg.vector_norm(left @ batch.right, dim=1)
    order = lengths.argsort()[int((lengths <= 1e-6 * lengths.max()).sum()) :]
    active = left[order]
    known = left.new_zeros(rank, 0)
    for turn in range(-(-samples // CHUNK)):
        among = max(min(len(active), 4 * rank), int(len(active) * SHORTEST[turn % len(SHORTEST)]))
        rows = torch.randint(among, (CHUNK, rank - 1), generator=generator)
        fresh = refine(active, null_vectors(active[rows]))
        if fresh.shape[1]:
            known = keep_sparsest(active, torch.cat([known, fresh], 1))
        if known.shape[1] == rank and batch.agreement(known) > AGREEING:
            break
    return known


def null_vectors(rows: Tensor) -> Tensor:
    """Return the vector orthogonal to each set of rows, K×(rank−1)×rank: rank×K."""
    vectors: Tensor = torch.linalg.svd(rows, full_matrices=True).Vh[:, -1]
    return vectors.T


def refine(left: Tensor, candidates: Tensor) -> Tensor:
    """Keep the candidates that are sparse; fit each to all of its zeros, which averages rounding out."""
    zeros = zeros_of(left, candidates, TOLERANCES[0])
    sparse = zeros.double().mean(0) >= SPARSE
    fitted = [fit(left, own) for own in zeros.T[sparse]]
    return torch.stack(fitted, 1) if fitted else candidates[:, :0]


def fit(left: Tensor, zeros: Tensor) -> Tensor:
    """Fit a direction to its zeros; the better it is, the fewer small entries are still taken for zeros."""
    direction = last_vector(left[zeros])
    for tolerance in TOLERANCES[1:]:
        tighter = zeros_of(left, direction[:, None], tolerance)[:, 0]
        if 2 * int(tighter.sum()) < int(zeros.sum()):
            break
        direction = last_vector(left[tighter])
    return direction


def last_vector(rows: Tensor) -> Tensor:
    """Return the unit vector that is nearest to orthogonal to all rows."""
    vectors: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors
    return vectors[:, 0]


def zeros_of(left: Tensor, candidates: Tensor, tolerance: float) -> Tensor:
    """Tell which entries of L·q are zero, outputs×K."""
    slopes = (left @ candidates).abs()
    zeros: Tensor = slopes < tolerance * slopes.amax(0)
    return zeros


def keep_sparsest(left: Tensor, candidates: Tensor) -> Tensor:
    """Keep the sparsest directions that do not depend on each other.

    A mixture of two images' directions is sparse as well, yet less so, and depends on theirs.
    """
    order = zeros_of(left, candidates, TOLERANCES[1]).sum(0).argsort(descending=True)
    chosen: list[Tensor] = []
    basis: list[Tensor] = []
    for place in order.tolist():
        rest = candidates[:, place]
        for known in basis:
            rest = rest - (known @ rest) * known
        length = float(torch.linalg.vector_norm(rest))
        if length > math.sqrt(1 - SAME**2):
            chosen.append(candidates[:, place])
            basis.append(rest / length)
        if len(chosen) == left.shape[1]:
            break
    return torch.stack(chosen, 1) if chosen else candidates


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
