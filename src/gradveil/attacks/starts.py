"""Where a search for images begins, in normalised space."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from gradveil.errors import KnowledgeError, SettingsError
from gradveil.types import Batch, Task, Update

FAINT = 0.1
"""Standard deviation of the noise that is added to a start: a flat image has no slope in some networks."""


class Start(ABC):
    """A way to choose the first images."""

    @property
    def needs(self) -> str | None:
        """What the attacker must know to start so, or None."""
        return None

    @property
    def public_images(self) -> int:
        """How many public images it can make use of beyond those that every attack gets."""
        return 0

    def check(self, task: Task) -> None:  # noqa: B027
        """Raise KnowledgeError if something is missing that the start needs; accept every task by default."""

    def for_update(self, task: Task, update: Update) -> "Start":  # noqa: ARG002
        """Return the start for one update; the same for all unless something is read from it."""
        return self

    @abstractmethod
    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the first images, B×C×H×W, on the device of their labels, B."""


@final
@dataclass(frozen=True)
class Noise(Start):
    """Begin at the mean colour with normal noise of this standard deviation; the papers use 1."""

    deviation: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.deviation < float("inf"):
            raise SettingsError(f"noise of standard deviation {self.deviation}: it must be 0 or more")

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(len(labels), *task.shape, generator=generator, device=generator.device)
        return self.deviation * noise.to(labels.device)


@final
@dataclass(frozen=True)
class Tiles(Start):
    """Begin with a square of normal noise of this width, repeated over the image: breaching's `patterned` start."""

    width: int = 4

    def __post_init__(self) -> None:
        if self.width < 1:
            raise SettingsError(f"tiles {self.width} wide: give 1 or more")

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        channels, height, width = task.shape
        size = (len(labels), channels, self.width, self.width)
        tile = torch.randn(size, generator=generator, device=generator.device)
        repeats = (1, 1, -(-height // self.width), -(-width // self.width))
        return tile.repeat(repeats)[..., :height, :width].contiguous().to(labels.device)


class PublicStart(Start):
    """A start that needs public images."""

    @property
    def needs(self) -> str | None:
        return "public images of the same kind"

    def check(self, task: Task) -> None:
        public_of(task)


@final
@dataclass(frozen=True)
class ClassMean(PublicStart):
    """Begin near the mean of the public images of the class; of all of them if the class has none."""

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        public = normalise(task)
        means = [public[find_class(task, label)].mean(0) for label in labels]
        return torch.stack(means) + Noise(FAINT).draw(task, labels, generator)


@final
@dataclass(frozen=True)
class PublicImage(PublicStart):
    """Begin at a public image of the class, drawn at random; at any of them if the class has none."""

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        public = normalise(task)
        chosen = [find_class(task, label) for label in labels]
        picks = [pick(rows, generator) for rows in chosen]
        return public[torch.stack(picks)].clone()


@final
@dataclass(frozen=True)
class BestGuess(Start):
    """Begin near the mean of the class if there are public images, near the mean colour otherwise."""

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        start = ClassMean() if task.public else Noise(FAINT)
        return start.draw(task, labels, generator)


@final
@dataclass(frozen=True, eq=False)
class Given(Start):
    """Begin near these pixels, B×C×H×W."""

    pixels: Tensor

    def draw(self, task: Task, labels: Tensor, generator: torch.Generator) -> Tensor:
        mean, std = (self.pixels.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
        return (self.pixels - mean) / std + Noise(FAINT).draw(task, labels, generator)


def pick(rows: Tensor, generator: torch.Generator) -> Tensor:
    place = torch.randint(len(rows), (), generator=generator, device=generator.device)
    return rows[place.to(rows.device)]


def find_class(task: Task, label: Tensor) -> Tensor:
    """List the places of the public images of a class, or of all of them if it has none."""
    public = public_of(task)
    rows = (public.labels == label).nonzero().flatten()
    return rows if len(rows) else torch.arange(len(public), device=rows.device)


def normalise(task: Task) -> Tensor:
    """Bring the public images to normalised space."""
    pixels = public_of(task).pixels()
    mean, std = (pixels.new_tensor(values).view(-1, 1, 1) for values in (task.mean, task.std))
    return (pixels - mean) / std


def public_of(task: Task) -> Batch:
    """Return the public images; raise KnowledgeError if there are none."""
    if task.public is None or len(task.public) == 0:
        raise KnowledgeError("this attack starts from public images and the task has none: give it some")
    return task.public
