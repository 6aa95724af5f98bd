"""What a score is, what it is made of, and how it is computed in blocks of images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.transforms import Policy, PolicySet
from gradveil.types import Batch, Place, Task

ROWS = 24
"""About how many images are differentiated together: more are no faster, and no longer fit the cache."""


class Score(Protocol):
    """A score of a policy on single images, lower is more private.

    The score of an image never depends on which others are asked for: images are always computed in the same blocks of
    `block` neighbours. Ask for whole blocks where you can, because the rest of a block is computed and dropped.
    """

    @property
    def block(self) -> int: ...

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        """Return the score of the images at `places`, all of them unless given, float64."""


@dataclass(frozen=True, eq=False)
class ScoreInputs:
    """What scores are made of: the task with weights and loss, the images, and images that anyone can have."""

    task: Task
    images: Batch
    public: Batch
    seed: int = 0

    def to(self, device: Place) -> "ScoreInputs":
        """Move the model, in place, and all images."""
        return ScoreInputs(self.task.to(device), self.images.to(device), self.public.to(device), self.seed)


def compute_blocks(places: Sequence[int] | None, count: int, size: int, compute: Callable[[range], Tensor]) -> Tensor:
    """Compute the blocks of `size` neighbours out of `count` that hold `places`; keep the rows of these, float64.

    `compute` returns one row for each image of a block.
    """
    wanted = range(count) if places is None else places
    check_places(wanted, count)
    blocks = {
        block: compute(range(block * size, min((block + 1) * size, count))).double().cpu()
        for block in sorted({place // size for place in wanted})
    }
    return torch.stack([blocks[place // size][place % size] for place in wanted])


def block_size(gradients: int) -> int:
    """Choose how many images make up about `ROWS` gradients: a power of two, so that rounds of images divide well."""
    return 1 << max(0, (ROWS // gradients).bit_length() - 1)


def check_choice(kind: str, name: str, allowed: Sequence[str]) -> None:
    """Refuse a name that is not allowed."""
    if name not in allowed:
        raise UnknownNameError(kind, name, allowed)


def check_places(places: Sequence[int], count: int) -> None:
    """Refuse places outside the images, and none at all."""
    if len(places) == 0:
        raise SettingsError(f"a score of no images: give places from 0 to {count - 1}")
    wrong = [place for place in places if not 0 <= place < count]
    if wrong:
        raise SettingsError(f"image {wrong[0]} of {count}: give places from 0 to {count - 1}")
