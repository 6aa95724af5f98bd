"""The base of every transform: draw parameters for a batch, apply a draw, and both on one image of any kind.

Draws are values of their own, so that a draw can be replayed.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import torch
from PIL import Image
from torch import Tensor

from gradveil.errors import DataError
from gradveil.transforms import pillow


@dataclass(frozen=True, eq=False)
class Draws(ABC):
    """The parameters of each image of a batch: tensors whose first dimension is the image."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the fields, in order."""

    def __len__(self) -> int:
        return self.tensors()[0].shape[0]

    def __getitem__(self, index: int) -> Self:
        """Return the draw of one image, as draws for a batch of one."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"image {index} of {len(self)}")
        position = index % len(self)
        return type(self)(*(tensor[position : position + 1] for tensor in self.tensors()))

    def take(self, indices: Tensor) -> Self:
        """Keep the draws of the images at `indices`, in that order."""
        return type(self)(*(tensor[indices.to(tensor.device)] for tensor in self.tensors()))

    def to(self, device: torch.device | str) -> Self:
        return type(self)(*(tensor.to(device) for tensor in self.tensors()))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Put draws one after the other."""
        return cls(*(torch.cat(tensors) for tensors in zip(*(part.tensors() for part in parts), strict=True)))


D = TypeVar("D", bound=Draws)
Picture = TypeVar("Picture", Tensor, Image.Image)


class BatchTransform(ABC, Generic[D]):
    """Draw parameters for each image of a batch, apart from applying them.

    Images are N×C×H×W, uint8 or float in [0, 1], with 1 or 3 channels. Float images are rounded to 8 bits first.
    """

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> D:
        """Draw the parameters of `count` images."""

    @abstractmethod
    def apply_bytes(self, images: Tensor, parameters: D) -> Tensor:
        """Apply a draw to uint8 images N×C×H×W on the same device."""

    @abstractmethod
    def apply_surrogate(self, images: Tensor, parameters: D) -> Tensor:
        """Apply a draw to float images whose values are 8-bit, so that gradients flow."""

    def apply(self, images: Tensor, parameters: D) -> Tensor:
        """Apply a draw; the result has the type of `images`."""
        check(images, parameters)
        parameters = parameters.to(images.device)
        if images.dtype == torch.uint8:
            return self.apply_bytes(images, parameters)
        return to_float(self.apply_bytes(to_bytes(images), parameters), images.dtype)

    def transform(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Draw and apply."""
        return self.apply(images, self.sample(len(images), generator))

    def transform_picture(self, picture: Image.Image, generator: torch.Generator) -> Image.Image:
        """Draw and apply to one PIL image of mode L or RGB."""
        return pillow.to_image(self.transform(pillow.to_tensor(picture).unsqueeze(0), generator).squeeze(0))

    def differentiable(self, images: Tensor, parameters: D) -> Tensor:
        """Apply a draw to float images so that gradients flow back to them.

        The values are those of `apply`. Rounding to 8 bits passes the gradient straight through, as does every
        operation that has no useful derivative of its own.
        """
        check(images, parameters)
        if not images.is_floating_point():
            raise DataError(f"images are {images.dtype}: gradients need float images in [0, 1]")
        rounded = straight_through(images, to_float(to_bytes(images), images.dtype))
        return self.apply_surrogate(rounded, parameters.to(images.device))

    def __call__(self, image: Picture) -> Picture:
        """Draw from torch's default generator and apply, to a PIL image, a C×H×W tensor or a batch.

        A `torchvision` Compose calls a transform like this. As in torchvision, the draws then come from the generator
        that a DataLoader seeds in each of its workers. Use `transform` with a generator everywhere else.
        """
        generator = torch.default_generator
        if isinstance(image, Image.Image):
            return self.transform_picture(image, generator)
        if image.dim() == 3:
            return self.transform(image.unsqueeze(0), generator).squeeze(0)
        return self.transform(image, generator)


def check(images: Tensor, parameters: Draws) -> None:
    """Refuse images of a wrong shape or type, and draws of another batch."""
    if images.dim() != 4 or images.shape[1] not in (1, 3) or min(images.shape[2:]) < 2:
        raise DataError(
            f"images of shape {tuple(images.shape)}: they must be N×1×H×W or N×3×H×W with sides of at least 2"
        )
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise DataError(f"images are {images.dtype}: they must be uint8, or float in [0, 1]")
    if len(images) != len(parameters):
        raise DataError(
            f"{len(images)} images and draws for {len(parameters)}: sample as many draws as there are images"
        )


def to_bytes(images: Tensor) -> Tensor:
    """Round float images in [0, 1] to 8 bits; values outside are clipped."""
    return images.detach().mul(255).round_().clamp_(0, 255).to(torch.uint8)


def to_float(images: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn uint8 images into float in [0, 1]."""
    return images.to(dtype).div_(255)


def straight_through(images: Tensor, values: Tensor) -> Tensor:
    """Return `values` with the gradient of `images`."""
    return images + (values - images).detach()
