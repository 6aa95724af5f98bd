"""A data set whose images are transformed as they are read."""

from collections.abc import Sequence, Sized
from typing import Any, Protocol

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from gradveil import rng
from gradveil.errors import SettingsError
from gradveil.transforms import pillow
from gradveil.transforms.base import BatchTransform

Picture = Image.Image | Tensor


class Items(Sized, Protocol):
    """A map-style data set of (image, label, …) tuples; the image is a PIL image or a C×H×W tensor."""

    def __getitem__(self, index: int, /) -> tuple[Any, ...]: ...


class PolicyDataset(Dataset[tuple[Any, ...]]):
    """Transform the image of each item, with draws that depend only on (seed, epoch, index).

    The images are the same for any number of DataLoader workers. Call `set_epoch` before each epoch: the epoch lives in
    shared memory, so persistent workers see it too. `base` comes before the policy.
    """

    def __init__(
        self, dataset: Items, policy: BatchTransform[Any], seed: int, base: BatchTransform[Any] | None = None
    ) -> None:
        rng.derive(seed)  # refuses a seed out of range now, not in a worker later
        self.dataset = dataset
        self.seed = seed
        self.steps = (("base", base), ("policy", policy)) if base is not None else (("policy", policy),)
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
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return several items; a DataLoader requests a whole batch at once, which is much faster than one by one."""
        items = [self.dataset[index] for index in indices]
        images = self.change([item[0] for item in items], [index % len(self) for index in indices])
        return [(image, *item[1:]) for image, item in zip(images, items, strict=True)]

    def change(self, images: Sequence[Picture], indices: Sequence[int]) -> list[Picture]:
        """Transform images: together if they are of one shape, otherwise one by one."""
        tensors = [pillow.to_tensor(image) if isinstance(image, Image.Image) else image for image in images]
        if len({(tensor.shape, tensor.dtype) for tensor in tensors}) > 1:
            return [self.change([image], [index])[0] for image, index in zip(images, indices, strict=True)]
        changed = self.change_batch(torch.stack(tensors), indices)
        return [
            pillow.to_image(new) if isinstance(old, Image.Image) else new
            for old, new in zip(images, changed, strict=True)
        ]

    def change_batch(self, images: Tensor, indices: Sequence[int]) -> Tensor:
        for name, step in self.steps:
            draws = [step.sample(1, rng.generator(self.seed, name, self.epoch, index)) for index in indices]
            images = step.apply(images, draws[0].join(draws))
        return images
