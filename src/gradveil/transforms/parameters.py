"""What was drawn for each image of a batch: kept apart from applying it, so that a draw can be replayed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from gradveil.errors import SettingsError


@dataclass(frozen=True, eq=False)
class Draws(ABC):
    """Tensors whose first dimension is the image."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """Give the fields, in order."""

    def __len__(self) -> int:
        return self.tensors()[0].shape[0]

    def __getitem__(self, index: int) -> Self:
        """Give the draw of one image, as draws for a batch of one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"image {index} of {len(self)}")
        position = index % len(self)
        return type(self)(*(tensor[position : position + 1] for tensor in self.tensors()))

    def take(self, indices: Tensor) -> Self:
        """Give the draws of the images at `indices`, in that order."""
        return type(self)(*(tensor[indices.to(tensor.device)] for tensor in self.tensors()))

    def to(self, device: torch.device | str) -> Self:
        return type(self)(*(tensor.to(device) for tensor in self.tensors()))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put draws one after the other."""
        return cls(*(torch.cat(tensors) for tensors in zip(*(part.tensors() for part in parts), strict=True)))


@dataclass(frozen=True, eq=False)
class PolicyDraws(Draws):
    """Which member of a policy set each image got, int64 N, and its signs +1 or −1, int8 N×steps.

    Steps that draw no sign hold +1, so that equal draws are equal tensors.
    """

    members: Tensor
    signs: Tensor

    def __post_init__(self) -> None:
        if self.members.dim() != 1 or self.signs.dim() != 2 or self.signs.shape[0] != self.members.shape[0]:
            raise SettingsError(
                f"draws with members of shape {tuple(self.members.shape)} and signs of shape "
                f"{tuple(self.signs.shape)}: they must be N and N×steps"
            )

    def tensors(self) -> tuple[Tensor, ...]:
        return self.members, self.signs


@dataclass(frozen=True, eq=False)
class CropFlipDraws(Draws):
    """Where each crop starts in the padded image, int64 N each, and whether it is flipped, bool N."""

    tops: Tensor
    lefts: Tensor
    flips: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        return self.tops, self.lefts, self.flips
