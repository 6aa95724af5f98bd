"""The accuracy score S_acc (Gao et al., 2021, Eq. 8–10, after Mellor et al.): how differently a network sees images."""

import copy
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError
from gradveil.scores.base import check_choice
from gradveil.scores.policy_draws import transform_images
from gradveil.scores.privacy import find_normalisation
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, to_pixels

Form = Literal["ours", "reference"]
EPSILON = 1e-5
STREAM = "accuracy draw"


class AccuracyScore:
    """Score policies on a randomly initialised model; higher is better.

    `form` "ours" is −(1/N)·Σ[log(σ+k) + 1/(σ+k)] over the N eigenvalues σ of the correlation matrix of a batch, at most
    −1, averaged over batches. "reference" is the papers' code: the sum without 1/N, and of images with the same label
    only the first of each batch counts. Differs from both: eigenvalues are those of a symmetric matrix, so always real.

    The model is used in evaluation mode, as in the papers' code; a fresh batch normalisation then changes next to
    nothing, and no image depends on another. Channels-last would be up to 1.6 times as fast, but a fresh ConvNet's
    max-pools meet so many values that differ in the last bit only that another order of summation moves the score by
    some 1e-4: here the sums are those of the plain loop.
    """

    def __init__(
        self,
        model: nn.Module,
        images: Tensor,
        labels: Tensor,
        *,
        form: Form = "ours",
        batch: int = 100,
        batches: int = 10,
        seed: int = 0,
    ) -> None:
        check_choice("form of S_acc", form, get_args(Form))
        if batch < 2 or batches < 1 or len(Batch(images, labels)) < batch * batches:
            raise SettingsError(
                f"{batches} batches of {batch} out of {len(images)} images: give batches of 2 or more and enough images"
            )
        self.form, self.seed = form, seed
        self.first = next(model.parameters())
        self.images, self.labels = images.to(self.first.device), labels
        self.batches = [range(first, first + batch) for first in range(0, batch * batches, batch)]
        self.groups = [self.choose(places) for places in self.batches]
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        normalise = find_normalisation(model)
        self.std = None if normalise is None else normalise.std

    def choose(self, places: range) -> list[int]:
        """Drop images with a label that was there before, in the reference form."""
        if self.form == "ours":
            return list(places)
        first = {int(self.labels[place]): place for place in reversed(places)}
        return sorted(first.values())

    def score(self, policy: Policy | PolicySet) -> float:
        """Compute S_acc: the mean over the batches."""
        scores = list(self.batch_scores(policy))
        return sum(scores) / len(scores)

    def batch_scores(self, policy: Policy | PolicySet) -> Iterator[float]:
        """Compute the score of each batch."""
        for places in self.groups:
            yield score_slopes(self.slopes(self.transformed(policy, places)), self.form)

    def transformed(self, policy: Policy | PolicySet, places: Sequence[int]) -> Tensor:
        """Return the images at `places` as the network sees them under a policy."""
        return to_pixels(transform_images(policy, self.images, places, self.seed, STREAM)).to(self.first)

    def slopes(self, images: Tensor) -> Tensor:
        """Take the gradient of the summed logits with respect to each normalised image, N×values."""
        pixels = images.clone().requires_grad_()
        with torch.enable_grad():
            (slopes,) = torch.autograd.grad(self.model(pixels).sum(), pixels)
        return (slopes if self.std is None else slopes * self.std).flatten(1)


def score_slopes(slopes: Tensor, form: Form) -> float:
    """Score the slopes of one batch, N×values.

    An image without any slope counts as wholly determined by the others: the worst there is.
    """
    rows = slopes.double()
    rows = rows - rows.mean(1, keepdim=True)
    rows = rows / rows.norm(dim=1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    return score_correlations(rows @ rows.T, form)


def score_correlations(correlations: Tensor, form: Form) -> float:
    """Score a correlation matrix; the identity has the best score, −1 in our form.

    >>> round(score_correlations(torch.eye(4, dtype=torch.float64), "ours"), 6)
    -1.0
    """
    shifted = torch.linalg.eigvalsh(correlations).clamp_min(0) + EPSILON
    terms = shifted.log() + 1 / shifted
    return -float(terms.mean() if form == "ours" else terms.sum())
