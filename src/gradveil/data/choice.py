"""Choose images: seeded, and balanced over the classes whatever the order in which a data set stores them.

Both splits are put in one random order for each seed. In the training split, public images (which anyone may have) come
from the front and private ones (which only a client has) from the back. In the test split, attacked images come from
the front and scored ones from the back. Choices from the two ends are therefore disjoint as long as they fit together.
"""

import torch
from torch import Tensor

from gradveil.data.base import DataSet, ImageSet
from gradveil.errors import SettingsError
from gradveil.rng import generator

IMAGE_CHOICE = 2
"""The version of the choice; 1 went by position. Figures of images that were chosen differently are not mixed."""


def stratify(labels: Tensor, source: torch.Generator) -> Tensor:
    """Order all images at random so that the classes are as balanced as can be in every prefix.

    Each round takes one image of every class that has any left. The classes come in a new random order in each round.

    >>> labels = torch.tensor([7, 7, 7, 7, 2, 2])
    >>> labels[stratify(labels, generator(0, "doctest"))].view(3, 2).sort().values.tolist()
    [[2, 7], [2, 7], [7, 7]]
    """
    order = torch.randperm(len(labels), generator=source)
    order = order[labels[order].argsort(stable=True)]
    ties = torch.randperm(len(labels), generator=source)
    return order[(number_members(labels[order]) * len(labels) + ties).argsort()]


def spread(labels: Tensor, source: torch.Generator) -> Tensor:
    """Order all images at random so that every prefix has the classes in their own proportions, as nearly as can be."""
    order = torch.randperm(len(labels), generator=source)
    order = order[labels[order].argsort(stable=True)]
    _, places, sizes = torch.unique(labels[order], return_inverse=True, return_counts=True)
    offsets = torch.rand(len(sizes), generator=source, dtype=torch.float64)
    return order[((number_members(labels[order]) + offsets[places]) / sizes[places]).argsort(stable=True)]


def number_members(labels: Tensor) -> Tensor:
    """Number the members of each class from 0, in the order in which they stand.

    >>> number_members(torch.tensor([4, 9, 4, 4, 9])).tolist()
    [0, 0, 1, 2, 1]
    """
    grouped = labels.argsort(stable=True)
    _, sizes = torch.unique(labels, return_counts=True)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    numbers = torch.empty_like(labels)
    numbers[grouped] = torch.arange(len(labels)) - starts
    return numbers


def order_from_both_ends(labels: Tensor, source: torch.Generator) -> Tensor:
    """Order all images at random so that both ends are stratified: every second round goes to the back.

    The back of a single stratified order would hold the largest class only, where classes differ in size.
    """
    order = stratify(labels, source)
    front = number_members(labels[order]) % 2 == 0
    return torch.cat([order[front], order[~front].flip(0)])


def choose_public(data: DataSet, count: int, seed: int) -> ImageSet:
    """Choose up to `count` training images that the attacker may have as well."""
    return data.train.take(order_train(data, seed)[:count])


def choose_private(data: DataSet, count: int, seed: int, *, public: int) -> ImageSet:
    """Choose `count` training images of the client's own, none of which is among the first `public` public ones."""
    free = len(data.train) - public
    if count > free:
        raise SettingsError(
            f"{count} private images beside {public} public ones: the {len(data.train)} training images of "
            f"{data.name} leave {max(free, 0)}; ask for fewer of either"
        )
    return data.train.take(order_train(data, seed)[len(data.train) - count :])


def choose_attacked(data: DataSet, count: int, seed: int) -> tuple[int, ...]:
    """Choose the positions of `count` test images to attack: the front of the test split's order.

    The first of a larger choice are those of a smaller one. Scored images come from the back of the same order, so
    that none is attacked as well unless the two counts exceed the split.
    """
    if not 1 <= count <= len(data.test):
        raise SettingsError(
            f"{count} images to attack: {data.name} has {len(data.test)} test images; ask for at least 1 and no more"
        )
    return tuple(order_test(data, seed)[:count].tolist())


def choose_scored(data: DataSet, count: int, seed: int) -> tuple[int, ...]:
    """Choose the positions of `count` test images to score: the back of the order that `choose_attacked` begins."""
    if not 1 <= count <= len(data.test):
        raise SettingsError(
            f"{count} images to score: {data.name} has {len(data.test)} test images; ask for at least 1 and no more"
        )
    return tuple(order_test(data, seed).flip(0)[:count].tolist())


def order_train(data: DataSet, seed: int) -> Tensor:
    """Order the training images: public images come from the front, private ones from the back."""
    return order_from_both_ends(data.train.labels, generator(seed, "floor", "images"))


def order_test(data: DataSet, seed: int) -> Tensor:
    """Order the test images: attacked images come from the front, scored ones from the back."""
    return order_from_both_ends(data.test.labels, generator(seed, "test images"))
