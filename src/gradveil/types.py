"""What passes between the client, the attacker and the audit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError

Loss = Callable[[Tensor, Tensor], Tensor]
Status = Literal["ok", "failed"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Private images, uint8 or float in [0, 1], N×C×H×W, with their labels, int64 N."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dim() != 4 or self.labels.shape != self.images.shape[:1]:
            raise SettingsError(
                f"a batch has images of shape {tuple(self.images.shape)} and labels of shape "
                f"{tuple(self.labels.shape)}: they must be N×C×H×W and N"
            )

    def __len__(self) -> int:
        return self.images.shape[0]

    def pixels(self) -> Tensor:
        """Give the images as float32 in [0, 1], as every model takes them."""
        return to_pixels(self.images)


def to_pixels(images: Tensor) -> Tensor:
    """Turn uint8 images into float32 in [0, 1]; leave float images as they are."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


@dataclass(frozen=True)
class LocalSteps:
    """How a client turned its images into a weight update of several steps."""

    steps: int
    learning_rate: float
    batch_size: int

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch_size < 1 or not self.learning_rate > 0:
            raise SettingsError(f"{self}: steps and batch size must be at least 1, the learning rate above 0")


@dataclass(frozen=True, eq=False)
class Task:
    """What everyone in the training knows.

    The model takes float images in [0, 1]; its first layer normalises. `mean` is the data set's mean colour. `public`
    holds images of the same kind that anyone can have; some attacks start from them. An update is the mean of those of
    so many `participants`, one unless they are aggregated securely.
    """

    model: nn.Module
    loss: Loss
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_defences: tuple[str, ...] = ()
    public: Batch | None = None
    participants: int = 1


@dataclass(frozen=True, eq=False)
class Update:
    """Exactly what left the client; the threat model is which fields are None.

    `tensors` maps parameter names to gradients, or to weight differences if `local_steps` is given.
    """

    tensors: Mapping[str, Tensor]
    images: int
    local_steps: LocalSteps | None = None
    labels: Tensor | None = None
    buffers: Mapping[str, Tensor] | None = None

    def __post_init__(self) -> None:
        if self.images < 1:
            raise SettingsError(f"an update of {self.images} images: at least 1 is needed")


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an attack rebuilt from one update: float images in [0, 1] and the labels it used or found.

    `history` is the matching loss over the steps of the restart that won; `similarities` is the cosine between its
    gradient and the released one, parameter by parameter, and `pictures` what it looked like, at some of these steps.
    `fed` is what the attacker believes the model was fed, if it tells that apart from the original image.
    """

    images: Tensor
    labels: Tensor
    matching_loss: float
    status: Status = "ok"
    history: tuple[tuple[int, float], ...] = field(default=())
    similarities: tuple[tuple[int, Mapping[str, float]], ...] = field(default=())
    pictures: tuple[tuple[int, Tensor], ...] = field(default=())
    fed: Tensor | None = None
