"""Attackers that look at no update: whatever an audit finds of theirs is false."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gradveil.attacks import Attack, Progress
from gradveil.types import Batch, Reconstruction, Task, Update

Guess = Literal["mean colour", "mean image", "picture"]


@dataclass(frozen=True)
class BlindGuess(Attack):
    """Answer with the mean colour or the mean of the public images of a label, or with one of them."""

    guess: Guess

    @property
    def needs(self) -> tuple[str, ...]:
        return ("public images",)

    @property
    def name(self) -> str:
        return f"blind, {self.guess}"

    def attack_many(
        self,
        task: Task,
        updates: Sequence[Update],
        generators: Sequence[torch.Generator],
        progress: Progress | None = None,  # noqa: ARG002
    ) -> list[Reconstruction]:
        assert task.public is not None
        return [self.answer(task.public, task.classes, *pair) for pair in zip(updates, generators, strict=True)]

    def answer(self, public: Batch, classes: int, update: Update, source: torch.Generator) -> Reconstruction:
        """Guess every image of an update; labels that are hidden are drawn."""
        drawn = torch.randint(classes, (update.images,), generator=source)
        labels = drawn if update.labels is None else update.labels
        images = torch.stack([self.guess_one(public, int(label), source) for label in labels])
        return Reconstruction(images, labels, 0.0)

    def guess_one(self, public: Batch, label: int, source: torch.Generator) -> Tensor:
        members = (public.labels == label).nonzero().flatten()
        pixels = public.take(members if len(members) else torch.arange(len(public))).pixels()
        if self.guess == "picture":
            return pixels[int(torch.randint(len(pixels), (1,), generator=source))]
        mean = pixels.mean(0)
        return mean if self.guess == "mean image" else mean.mean((1, 2), keepdim=True).expand_as(mean)
