"""What passes between the client, the attacker and the audit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy, Loss, parse_loss
from gradveil.results import read_settings

Status = Literal["ok", "failed", "refused"]
Mode = Literal["train", "eval"]
OptimiserName = Literal["sgd", "adam", "muon"]
Place = torch.device | str


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
        """Return the images as float32 in [0, 1], as every model takes them."""
        return to_pixels(self.images)

    def take(self, places: Tensor | slice) -> "Batch":
        """Keep the images at `places`, in that order."""
        return Batch(self.images[places], self.labels[places])

    def to(self, device: Place) -> "Batch":
        return Batch(self.images.to(device), self.labels.to(device))

    @staticmethod
    def join(batches: "list[Batch]") -> "Batch":
        """Put batches one after the other, as float images."""
        return Batch(torch.cat([batch.pixels() for batch in batches]), torch.cat([batch.labels for batch in batches]))


def to_pixels(images: Tensor) -> Tensor:
    """Turn uint8 images into float32 in [0, 1]; leave float images as they are."""
    return images.float() / 255 if images.dtype == torch.uint8 else images


@dataclass(frozen=True)
class LocalTraining:
    """How a client works on its images in one round.

    With neither `steps` nor `epochs` it computes one gradient of all its images and releases that; the optimiser then
    is the server's. With one of them it takes so many optimiser steps, or passes over its images, and releases the
    change of its weights. `batch_size` is the size of a local batch, all images if None; under DP-SGD it is the
    expected size. Batches are consecutive, round and round; with `shuffle` in a new random order at every pass.
    `optimiser` starts anew every round; `muon` is the fast recipe's, with `muon_scale`. `mode` is that of batch
    normalisation and dropout.
    """

    steps: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    optimiser: OptimiserName = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    muon_scale: float = 0.2
    loss: Loss = field(default_factory=CrossEntropy)
    shuffle: bool = False
    mode: Mode = "eval"

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise SettingsError(f"{self.steps} local steps and {self.epochs} local epochs: give one of them")
        for name in ("steps", "epochs", "batch_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"local {name.replace('_', ' ')} is {value}: give 1 or more")
        if not 0 < self.learning_rate < float("inf"):
            raise SettingsError(f"the local learning rate is {self.learning_rate}: it must be above 0")
        if not (0 <= self.momentum < 1 and 0 <= self.weight_decay < float("inf") and 0 < self.muon_scale < 1e6):
            raise SettingsError(
                f"local momentum {self.momentum}, weight decay {self.weight_decay}, Muon scale {self.muon_scale}: "
                "momentum must be from 0 to below 1, the others 0 or more"
            )
        if self.nesterov and self.momentum == 0:
            raise SettingsError("Nesterov's method without momentum: give a momentum above 0")
        if self.optimiser not in ("sgd", "adam", "muon"):
            raise SettingsError(f"local optimiser '{self.optimiser}': choose sgd, adam or muon")
        if self.mode not in ("train", "eval"):
            raise SettingsError(f"mode '{self.mode}': choose train or eval")

    @property
    def takes_steps(self) -> bool:
        """Tell whether a weight change is released, not a gradient."""
        return self.steps is not None or self.epochs is not None

    def size_of(self, images: int) -> int:
        """Return the size of a local batch out of `images`."""
        return images if self.batch_size is None else self.batch_size

    def count_steps(self, images: int) -> int:
        """Count the optimiser steps of a round over `images`; the last batch of an epoch may be smaller."""
        if self.epochs is not None:
            return self.epochs * -(-images // self.size_of(images))
        return self.steps or 0

    def words(self, images: int) -> str:
        """Say what a client with so many images releases.

        >>> LocalTraining(epochs=2, batch_size=4).words(8)
        'the weight change of 2 local epochs on 8 images (sgd, rate 0.1, batches of 4), eval mode, cross-entropy'
        """
        owned = "1 image" if images == 1 else f"{images} images"
        tail = f"{self.mode} mode, {self.loss}"
        if not self.takes_steps:
            return f"one gradient of {owned}, {tail}"
        count, unit = (self.steps, "step") if self.epochs is None else (self.epochs, "epoch")
        work = f"{count} local {unit}{'' if count == 1 else 's'} on {owned}"
        how = f"{self.optimiser}, rate {self.learning_rate:g}, batches of {self.size_of(images)}"
        if self.momentum:
            how += f", momentum {self.momentum:g}"
        if self.shuffle:
            how += ", shuffled"
        return f"the weight change of {work} ({how}), {tail}"

    def to_record(self) -> dict[str, Any]:
        """Return the settings as they stand in JSON."""
        return {**asdict(self), "loss": str(self.loss)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "LocalTraining":
        """Read settings back from JSON; an unknown key is refused."""
        return read_settings(cls, record, "local training", loss=parse_loss)


ONE_GRADIENT = LocalTraining()
"""One gradient of all images, in evaluation mode, of plain cross-entropy."""


@dataclass(frozen=True, eq=False)
class Task:
    """What everyone in the training knows.

    The model takes float images in [0, 1]; its first layer normalises. `mean` is the data set's mean colour.
    `known_defences` are the `Defence` objects that the attacker is told of, never their draws. `public` holds images of
    the same kind that anyone can have; some attacks start from them. An update is the mean of those of so many
    `participants`, one unless they are aggregated securely.
    """

    model: nn.Module
    loss: Loss
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_defences: tuple[Any, ...] = ()
    public: Batch | None = None
    participants: int = 1

    def to(self, device: Place) -> "Task":
        """Move the model, in place, and the public images."""
        public = None if self.public is None else self.public.to(device)
        return replace(self, model=self.model.to(device), public=public)


@dataclass(frozen=True, eq=False)
class Update:
    """Exactly what left the client; the threat model is which fields are None.

    `tensors` maps parameter names to gradients, or to weight changes if `local` takes steps. `buffers` are those of
    the client's model after its work, as a state dict carries them.
    """

    tensors: Mapping[str, Tensor]
    images: int
    local: LocalTraining = ONE_GRADIENT
    labels: Tensor | None = None
    buffers: Mapping[str, Tensor] | None = None

    def __post_init__(self) -> None:
        if self.images < 1:
            raise SettingsError(f"an update of {self.images} images: at least 1 is needed")

    @property
    def device(self) -> torch.device:
        return next(iter(self.tensors.values())).device

    def to(self, device: Place) -> "Update":
        """Move every tensor."""
        return replace(
            self,
            tensors={name: tensor.to(device) for name, tensor in self.tensors.items()},
            labels=None if self.labels is None else self.labels.to(device),
            buffers=None
            if self.buffers is None
            else {name: tensor.to(device) for name, tensor in self.buffers.items()},
        )


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an attack rebuilt from one update: float images in [0, 1] and the labels it used or found.

    A failed one says why in `reason`. `history` is the matching loss over the steps of the restart that won;
    `similarities` is the cosine between its gradient and the released one, parameter by parameter, and `pictures` what
    it looked like, at some of these steps. `transformed` is what the attacker takes for T(x), if it tells that
    apart from the original image. `approximations` names what the attacker's simulation of the client leaves out.
    """

    images: Tensor
    labels: Tensor
    matching_loss: float
    status: Status = "ok"
    history: tuple[tuple[int, float], ...] = field(default=())
    similarities: tuple[tuple[int, Mapping[str, float]], ...] = field(default=())
    pictures: tuple[tuple[int, Tensor], ...] = field(default=())
    transformed: Tensor | None = None
    reason: str = ""
    approximations: tuple[str, ...] = ()
