"""The training loss: one named value, the same in training, release, attack and scores."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from torch import Tensor
from torch.nn import functional as F

from gradveil.errors import SettingsError

FORMS = "write cross-entropy, or cross-entropy:smoothing=S with 0 ≤ S < 1"


class Loss(ABC):
    """The loss of logits, N×classes, at labels: whole numbers N, or probabilities N×classes."""

    @abstractmethod
    def per_image(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return one loss for each image, N."""

    @abstractmethod
    def __str__(self) -> str:
        """Write the loss as `parse_loss` reads it, or name it if it is a person's own."""

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of a batch."""
        return self.per_image(logits, labels).mean()


@final
@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Cross-entropy; `smoothing` is the share of every label that is spread over all classes.

    >>> str(CrossEntropy(0.1)), str(CrossEntropy())
    ('cross-entropy:smoothing=0.1', 'cross-entropy')
    """

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise SettingsError(f"label smoothing is {self.smoothing}: {FORMS}")

    def per_image(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing, reduction="none")

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing)

    def __str__(self) -> str:
        return "cross-entropy" + (f":smoothing={self.smoothing:g}" if self.smoothing else "")


def parse_loss(text: str) -> Loss:
    """Read a loss.

    >>> parse_loss("cross-entropy:smoothing=0.1")
    CrossEntropy(smoothing=0.1)
    """
    name, colon, setting = text.partition(":")
    key, _, value = setting.partition("=")
    if name != "cross-entropy" or (colon and key != "smoothing"):
        raise SettingsError(f"loss '{text}' is unknown: {FORMS}")
    try:
        return CrossEntropy(float(value) if colon else 0.0)
    except ValueError as error:
        raise SettingsError(f"loss '{text}' has no number after smoothing=: {FORMS}") from error
