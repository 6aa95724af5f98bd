"""The base augmentation of training: random crop with zero padding, and horizontal flip."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.errors import SettingsError
from gradveil.transforms.base import BatchTransform, Draws


@dataclass(frozen=True, eq=False)
class CropFlipDraws(Draws):
    """Where each crop starts in the padded image, int64 N each, and whether it is flipped, bool N."""

    tops: Tensor
    lefts: Tensor
    flips: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        return self.tops, self.lefts, self.flips


@dataclass(frozen=True)
class BaseAugmentation(BatchTransform[CropFlipDraws]):
    """Pad with black, cut a random window of the old size, and flip every second image on average."""

    padding: int = 4

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise SettingsError(f"a padding of {self.padding}: give 0 or more pixels")

    def __str__(self) -> str:
        return f"crop-flip (padding {self.padding})"

    def sample(self, count: int, generator: torch.Generator) -> CropFlipDraws:
        device = generator.device
        corners = torch.randint(2 * self.padding + 1, (2, count), generator=generator, device=device)
        flips = torch.randint(2, (count,), generator=generator, device=device).bool()
        return CropFlipDraws(corners[0], corners[1], flips)

    def apply_bytes(self, images: Tensor, parameters: CropFlipDraws) -> Tensor:
        return self.crop_and_flip(images, parameters)

    def apply_surrogate(self, images: Tensor, parameters: CropFlipDraws) -> Tensor:
        return self.crop_and_flip(images, parameters)

    def crop_and_flip(self, images: Tensor, parameters: CropFlipDraws) -> Tensor:
        """Pick every pixel of the window from the padded image."""
        padded = F.pad(images, (self.padding,) * 4)
        height, width = images.shape[2:]
        row, column = (torch.arange(side, device=images.device) for side in (height, width))
        columns = torch.where(parameters.flips[:, None], width - 1 - column, column) + parameters.lefts[:, None]
        rows = parameters.tops[:, None] + row
        sources = rows[:, :, None] * padded.shape[3] + columns[:, None, :]
        picked = padded.flatten(2).gather(2, sources.flatten(1)[:, None].expand(-1, images.shape[1], -1))
        return picked.view_as(images)
