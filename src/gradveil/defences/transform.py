"""Defences that transform the images before the gradient is computed."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from gradveil.defences.base import Defence, Hook
from gradveil.transforms import BaseAugmentation, PolicySet
from gradveil.types import Batch


@dataclass(frozen=True, repr=False)
class CropFlip(Defence):
    """The base augmentation of training: random crop with padding and horizontal flip."""

    augmentation: BaseAugmentation = field(default_factory=BaseAugmentation)

    hooks: ClassVar[tuple[Hook, ...]] = ("batch",)
    used: ClassVar[str] = "nothing, because the original is scored up to a flip and a shift, and this does no more"

    def __str__(self) -> str:
        return "crop-flip"

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
        return Batch(self.augmentation.transform(batch.images, generator), batch.labels)


@dataclass(frozen=True, repr=False)
class PolicyDefence(Defence):
    """Replace every image by one draw of a transformation policy (Gao et al., 2021)."""

    policies: PolicySet

    hooks: ClassVar[tuple[Hook, ...]] = ("batch",)
    used: ClassVar[str] = "the set of policies: it tries their draws"

    def __str__(self) -> str:
        return f"policy:{self.policies}"

    def batch(self, batch: Batch, generator: torch.Generator) -> Batch:
        return Batch(self.policies.transform(batch.images, generator), batch.labels)

    def known_policies(self) -> PolicySet:
        return self.policies
