"""Divide the training images among participants: each image goes to one participant, and each gets at least one.

A partition is written `iid`, `dirichlet:ALPHA` or `classes:K`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.rng import MAX_SEED

LEAST_ALPHA, GREATEST_ALPHA = 1e-4, 1e6


class Partition(ABC):
    """A way to divide images by their labels."""

    @abstractmethod
    def deal(self, labels: Tensor, participants: int, source: torch.Generator) -> list[Tensor]:
        """Return the positions of each participant's images; some may get none."""


@final
@dataclass(frozen=True)
class Iid(Partition):
    """Equal shares drawn at random; if the images do not divide evenly, some shares have one more."""

    def deal(self, labels: Tensor, participants: int, source: torch.Generator) -> list[Tensor]:
        return list(torch.randperm(len(labels), generator=source).tensor_split(participants))


@final
@dataclass(frozen=True)
class Dirichlet(Partition):
    """Each class is divided by its own draw from a symmetric Dirichlet(α), as in Yurochkin et al. (2019).

    A small α gives each class to few participants, a large one comes close to equal shares.
    """

    alpha: float

    def __post_init__(self) -> None:
        if not LEAST_ALPHA <= self.alpha <= GREATEST_ALPHA:
            raise SettingsError(
                f"dirichlet:{self.alpha} is out of range: α must be from {LEAST_ALPHA} to {GREATEST_ALPHA:.0f}"
            )

    def deal(self, labels: Tensor, participants: int, source: torch.Generator) -> list[Tensor]:
        numbers = np.random.default_rng(int(torch.randint(MAX_SEED, (), generator=source)))
        pieces = []
        for members in shuffled_classes(labels, source):
            bounds = proportions(self.alpha, participants, numbers).cumsum()[:-1] * len(members)
            pieces.append(members.tensor_split(bounds.round().astype(int).tolist()))
        return [torch.cat(share) for share in zip(*pieces, strict=True)]


@final
@dataclass(frozen=True)
class ByClass(Partition):
    """Each participant holds `classes` classes, and each class is divided equally among those who hold it."""

    classes: int

    def __post_init__(self) -> None:
        if self.classes < 1:
            raise SettingsError(f"classes:{self.classes} is out of range: give each participant at least 1 class")

    def deal(self, labels: Tensor, participants: int, source: torch.Generator) -> list[Tensor]:
        groups = shuffled_classes(labels, source)
        if not len(groups) / participants <= self.classes <= len(groups):
            raise SettingsError(
                f"classes:{self.classes} does not work for {len(groups)} classes and {participants} participants: "
                f"give each from {-(-len(groups) // participants)} to {len(groups)} classes, so that each has a holder"
            )
        # Consecutive places in a row that repeats all classes in random order hold different classes.
        order = torch.randperm(len(groups), generator=source).tolist()
        held = [[order[place % len(order)] for place in self.places(holder)] for holder in range(participants)]
        holders = [[holder for holder in range(participants) if group in held[holder]] for group in range(len(groups))]
        shares: list[list[Tensor]] = [[] for _ in range(participants)]
        for members, owners in zip(groups, holders, strict=True):
            for owner, piece in zip(owners, members.tensor_split(len(owners)), strict=True):
                shares[owner].append(piece)
        return [torch.cat(share) for share in shares]

    def places(self, holder: int) -> range:
        return range(holder * self.classes, (holder + 1) * self.classes)


def partition_images(labels: Tensor, participants: int, how: Partition, source: torch.Generator) -> list[Tensor]:
    """Return the positions of each participant's images, in rising order.

    A participant without an image gets one from the largest share.
    """
    if not 1 <= participants <= len(labels):
        raise SettingsError(
            f"{participants} participants for {len(labels)} images: there must be at least 1, and an image for each"
        )
    shares = how.deal(labels, participants, source)
    for poorest in (number for number, share in enumerate(shares) if len(share) == 0):
        richest = max(range(participants), key=lambda number: len(shares[number]))
        shares[poorest], shares[richest] = shares[richest][:1], shares[richest][1:]
    return [share.sort().values for share in shares]


def parse_partition(text: str) -> Partition:
    """Read a partition as it is written on the command line.

    >>> parse_partition("dirichlet:0.5")
    Dirichlet(alpha=0.5)
    """
    name, _, value = text.partition(":")
    try:
        match name:
            case "iid" if not value:
                return Iid()
            case "dirichlet":
                return Dirichlet(float(value))
            case "classes":
                return ByClass(int(value))
    except ValueError as error:
        raise SettingsError(
            f"partition '{text}' has no number after the colon: write dirichlet:0.5 or classes:2"
        ) from error
    raise UnknownNameError("partition", text, ("iid", "dirichlet:ALPHA", "classes:K"))


def shuffled_classes(labels: Tensor, source: torch.Generator) -> list[Tensor]:
    """List the positions of each class that is present, in random order."""
    groups = [(labels == label).nonzero().flatten() for label in torch.unique(labels)]
    return [members[torch.randperm(len(members), generator=source)] for members in groups]


def proportions(alpha: float, count: int, numbers: np.random.Generator) -> NDArray[np.float64]:
    """Draw from a symmetric Dirichlet, by gamma draws in logarithms: at α = 0.001 all of them would underflow."""
    logarithms = np.log(numbers.standard_gamma(alpha + 1, count)) + np.log1p(-numbers.random(count)) / alpha
    weights: NDArray[np.float64] = np.exp(logarithms - logarithms.max())
    weights /= weights.sum()
    return weights
