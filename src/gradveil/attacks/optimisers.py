"""Optimisers of many independent targets at once.

Points are T×N. Each target has its own state, so no target can influence another, and any of them can be dropped.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, final

import torch
from torch import Tensor


class Optimiser(ABC):
    """Move points along their slopes; `iterations` gradients are computed in one step of it."""

    iterations: ClassVar[int] = 1
    one_distance: ClassVar[bool] = False
    """Whether its memory is of one distance, so that the distance must stay the same throughout."""

    @abstractmethod
    def __init__(self, like: Tensor) -> None:
        """Begin for points of this shape, on its device."""

    @abstractmethod
    def move(self, slopes: Tensor, rate: float) -> Tensor:
        """Return how far each point moves, given the slopes at the present points."""

    @abstractmethod
    def keep(self, rows: Tensor) -> None:
        """Go on with the targets at `rows` only."""


@final
class Adam(Optimiser):
    """Kingma and Ba (2015), with the usual constants."""

    def __init__(self, like: Tensor) -> None:
        self.first, self.second = torch.zeros_like(like), torch.zeros_like(like)
        self.steps = 0

    def move(self, slopes: Tensor, rate: float) -> Tensor:
        self.steps += 1
        self.first = torch.lerp(self.first, slopes, 0.1)
        self.second = torch.lerp(self.second, slopes.square(), 0.001)
        spread = (self.second / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
        return self.first * (-rate / (1 - 0.9**self.steps)) / spread

    def keep(self, rows: Tensor) -> None:
        self.first, self.second = self.first[rows], self.second[rows]


@final
class Nesterov(Optimiser):
    """Gradient descent with Nesterov momentum 0.9, as torch writes it."""

    def __init__(self, like: Tensor) -> None:
        self.velocity = torch.zeros_like(like)

    def move(self, slopes: Tensor, rate: float) -> Tensor:
        self.velocity = 0.9 * self.velocity + slopes
        return -rate * (slopes + 0.9 * self.velocity)

    def keep(self, rows: Tensor) -> None:
        self.velocity = self.velocity[rows]


@final
class LimitedMemory(Optimiser):
    """L-BFGS without line search, as torch writes it: the learning rate is the step length, and a step 20 iterations.

    A pair of differences without positive curvature counts for nothing in the target it belongs to.
    """

    iterations = 20
    one_distance = True
    memory = 100
    least_curvature = 1e-10
    least_descent = 1e-9

    def __init__(self, like: Tensor) -> None:
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scale = like.new_ones(len(like), 1)
        self.last: tuple[Tensor, Tensor] | None = None

    def move(self, slopes: Tensor, rate: float) -> Tensor:
        length: Tensor | float = rate
        if self.last is None:
            length = rate * (1 / slopes.abs().sum(1, keepdim=True)).clamp(max=1)
        else:
            self.remember(slopes, *self.last)
        direction = self.direction(slopes)
        # A direction that does not lead down any more means that the target has come to rest.
        descends = (slopes * direction).sum(1, keepdim=True) < -self.least_descent
        moved = torch.where(descends, length * direction, torch.zeros_like(direction))
        self.last = slopes, moved
        return moved

    def remember(self, slopes: Tensor, before: Tensor, moved: Tensor) -> None:
        change = slopes - before
        curvature = (change * moved).sum(1, keepdim=True)
        sound = curvature > self.least_curvature
        if sound.any():
            weight = torch.where(sound, 1 / curvature, 0.0)
            self.pairs = [*self.pairs[-self.memory + 1 :], (moved, change, weight)]
            self.scale = torch.where(sound, curvature / change.square().sum(1, keepdim=True), self.scale)

    def direction(self, slopes: Tensor) -> Tensor:
        """Multiply the slopes by the estimated inverse of the curvature (Nocedal's two loops)."""
        direction = -slopes
        shares = []
        for moved, change, weight in reversed(self.pairs):
            share = weight * (moved * direction).sum(1, keepdim=True)
            direction = direction - share * change
            shares.append(share)
        direction = direction * self.scale
        for (moved, change, weight), share in zip(self.pairs, reversed(shares), strict=True):
            direction = direction + (share - weight * (change * direction).sum(1, keepdim=True)) * moved
        return direction

    def keep(self, rows: Tensor) -> None:
        self.pairs = [(moved[rows], change[rows], weight[rows]) for moved, change, weight in self.pairs]
        self.scale = self.scale[rows]
        if self.last is not None:
            self.last = self.last[0][rows], self.last[1][rows]
