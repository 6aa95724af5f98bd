"""The base augmentation of training: random crop with zero padding, and horizontal flip."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.errors import SettingsError
from gradveil.transforms.base import BatchTransform
from gradveil.transforms.parameters import CropFlipDraws


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
        count, channels, height, width = images.shape
        padded = F.pad(images, (self.padding,) * 4)
        rows = parameters.tops[:, None] + torch.arange(height, device=images.device)
        columns = torch.arange(width, device=images.device).expand(count, width)
        columns = torch.where(parameters.flips[:, None], width - 1 - columns, columns) + parameters.lefts[:, None]
        cropped = padded.gather(2, rows[:, None, :, None].expand(-1, channels, -1, padded.shape[3]))
        return cropped.gather(3, columns[:, None, None, :].expand(-1, channels, height, -1))
