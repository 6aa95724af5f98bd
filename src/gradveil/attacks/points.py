"""The images that are searched for, as points that an optimiser moves."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.types import Task


@final
class Points:
    """The images of T runs in normalised space and, if they are searched for, the logits of their labels.

    `flat` has one row for each run: the images, T×B×C×H×W at the resolution of the present scale, then the logits.
    `labels` are given as T×B whole numbers, or to be searched for as T×B×classes logits to start from.
    """

    flat: Tensor

    def __init__(self, task: Task, images: Tensor, labels: Tensor) -> None:
        self.shape, self.classes = task.shape, task.classes
        self.searches_labels = labels.dim() == 3
        self.given_labels = None if self.searches_labels else labels
        self.mean = images.new_tensor(task.mean).view(-1, 1, 1)
        self.std = images.new_tensor(task.std).view(-1, 1, 1)
        self.place(images, labels if self.searches_labels else None)

    def __len__(self) -> int:
        return len(self.flat)

    def place(self, images: Tensor, logits: Tensor | None) -> None:
        """Begin anew from these images and logits."""
        parts = [images.flatten(1)] if logits is None else [images.flatten(1), logits.flatten(1)]
        self.size = images.shape[1:]
        limits = (-self.mean / self.std, (1 - self.mean) / self.std)
        self.low, self.high = (limit.expand(self.size).flatten() for limit in limits)
        self.flat = torch.cat(parts, 1).detach().requires_grad_()

    def rescale(self, scale: int) -> None:
        """Go on at a resolution `scale` times lower than the full one."""
        self.place(shrink(self.images(), scale), self.logits())

    def images(self) -> Tensor:
        """Return the images in normalised space at full resolution."""
        points = self.flat[:, : self.size.numel()].view(-1, *self.size)
        return points if points.shape[2:] == self.shape else enlarge(points, self.shape[1:])

    def pixels(self) -> Tensor:
        """Return the images as a model takes them, at full resolution; without `clamp` they may leave [0, 1]."""
        return self.to_pixels(self.images())

    def to_pixels(self, images: Tensor) -> Tensor:
        """Bring images from normalised space to pixels."""
        return images * self.std + self.mean

    def mean_colour(self) -> Tensor:
        """Return flat images of the mean colour for every run."""
        return self.mean.expand(len(self), self.size[0], *self.shape)

    def logits(self) -> Tensor | None:
        rest = self.flat[:, self.size.numel() :]
        return rest.view(-1, self.size[0], self.classes) if self.searches_labels else None

    def labels(self) -> Tensor:
        """Return the labels, T×B, or the present probabilities, T×B×classes."""
        logits = self.logits()
        if logits is not None:
            return logits.softmax(-1)
        assert self.given_labels is not None
        return self.given_labels

    def chosen_labels(self) -> Tensor:
        """Return whole labels, T×B."""
        labels = self.labels().detach()
        return labels.argmax(-1) if self.searches_labels else labels

    def move(self, distance: Tensor) -> None:
        """Move every point, T×N."""
        with torch.no_grad():
            self.flat.add_(distance)

    def put_back(self, runs: Tensor, points: Tensor) -> None:
        """Set the runs where `runs` is true to these points."""
        with torch.no_grad():
            self.flat[runs] = points[runs]

    def clamp(self) -> None:
        """Clamp the images to valid pixels."""
        with torch.no_grad():
            self.flat[:, : self.size.numel()].clamp_(self.low, self.high)

    def keep(self, rows: Tensor) -> None:
        """Go on with the runs at `rows` only."""
        self.given_labels = None if self.given_labels is None else self.given_labels[rows]
        self.flat = self.flat.detach()[rows].requires_grad_()


def shrink(images: Tensor, scale: int) -> Tensor:
    """Take T×B×C×H×W to a resolution `scale` times lower."""
    if scale == 1:
        return images
    height, width = (-(-side // scale) for side in images.shape[-2:])
    small = F.adaptive_avg_pool2d(images.flatten(0, 1), (height, width))
    return small.view(*images.shape[:3], height, width)


def enlarge(images: Tensor, size: Sequence[int]) -> Tensor:
    """Bring T×B×C×h×w to full resolution, smoothly."""
    large = F.interpolate(images.flatten(0, 1), size=tuple(size), mode="bilinear", align_corners=False)
    return large.view(*images.shape[:3], *size)
