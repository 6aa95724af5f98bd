"""A data set whose images are transformed as they are read."""

from collections.abc import Sized
from typing import Any, Protocol

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from gradveil import rng
from gradveil.errors import SettingsError
from gradveil.transforms import pillow
from gradveil.transforms.base import BatchTransform


class Items(Sized, Protocol):
    """A map-style data set of (image, label, …) tuples; the image is a PIL image or a C×H×W tensor."""

    def __getitem__(self, index: int, /) -> tuple[Any, ...]: ...


class PolicyDataset(Dataset[tuple[Any, ...]]):
    """Transform the image of each item, by draws that depend on nothing but (seed, epoch, index).

    Any number of DataLoader workers gives the same images. Call `set_epoch` before each epoch: the epoch lives in
    shared memory, so persistent workers see it too. `base` comes before the policy.
    """

    def __init__(
        self,
        dataset: Items,
        policy: BatchTransform[Any],
        seed: int,
        base: BatchTransform[Any] | None = None,
    ) -> None:
        self.dataset = dataset
        self.policy = policy
        self.seed = seed
        self.base = base
        self._epoch = torch.zeros((), dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def epoch(self) -> int:
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        if epoch < 0:
            raise SettingsError(f"epoch {epoch}: give 0 or more")
        self._epoch.fill_(epoch)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        image, *rest = self.dataset[index]
        return (self.change(image, index % len(self)), *rest)

    def change(self, image: Image.Image | Tensor, index: int) -> Image.Image | Tensor:
        if isinstance(image, Image.Image):
            return pillow.to_image(self.change_tensor(pillow.to_tensor(image), index))
        return self.change_tensor(image, index)

    def change_tensor(self, image: Tensor, index: int) -> Tensor:
        images = image.unsqueeze(0)
        if self.base is not None:
            images = self.base.transform(images, self.stream("base", index))
        return self.policy.transform(images, self.stream("policy", index)).squeeze(0)

    def stream(self, name: str, index: int) -> torch.Generator:
        return rng.generator(self.seed, name, self.epoch, index)
