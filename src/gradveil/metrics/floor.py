"""The chance floor: the score of an attacker who saw no gradient.

Its guesses come from training images only: their mean colour, their mean image, and the mean of each class if labels
are known. The guess with the best mean score over training images is the floor; it is never chosen per target.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

Score = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Floor:
    """The guess of an attacker who saw nothing: one image for each class (all the same unless `kind` is class mean)."""

    kind: str
    images: Tensor

    def guess(self, labels: Tensor) -> Tensor:
        """Return the guess for images of these labels."""
        return self.images[labels]


def make_guesses(batches: Iterable[tuple[Tensor, Tensor]], classes: int, labels_known: bool) -> dict[str, Tensor]:
    """Average float images over batches of (images, labels); each guess is classes×C×H×W.

    Sums are in float64: a float32 mean over tens of thousands of images is inaccurate.
    """
    sums: Tensor | None = None
    counts = torch.zeros(classes, dtype=torch.float64)
    for images, labels in batches:
        if sums is None:
            sums = torch.zeros(classes, *images.shape[1:], dtype=torch.float64)
        sums.index_add_(0, labels, images.double())
        counts += torch.bincount(labels, minlength=classes)
    if sums is None:
        raise ValueError("a floor needs at least one batch of training images")
    mean = sums.sum(0) / counts.sum()
    colour = mean.mean((1, 2), keepdim=True).expand_as(mean)
    guesses = {"mean colour": colour.expand_as(sums), "mean image": mean.expand_as(sums)}
    if labels_known:
        seen = (counts > 0).view(-1, 1, 1, 1)
        guesses["class mean"] = torch.where(seen, sums / counts.clamp(min=1).view(-1, 1, 1, 1), mean)
    return {kind: images.float() for kind, images in guesses.items()}


def choose_floor(guesses: dict[str, Tensor], images: Tensor, labels: Tensor, score: Score) -> Floor:
    """Keep the guess with the best mean score over training images."""
    means = {kind: float(score(guess[labels], images).mean()) for kind, guess in guesses.items()}
    kind = max(means, key=lambda name: means[name])
    return Floor(kind, guesses[kind])
