"""Choose training images: public ones, which anyone may have, and private ones, which only a client has."""

import torch
from torch import Tensor

from gradveil.data.base import DataSet, ImageSet
from gradveil.errors import SettingsError
from gradveil.rng import generator


def choose_public(data: DataSet, count: int, seed: int) -> ImageSet:
    """Choose up to `count` training images that the attacker may have as well."""
    return data.train.take(shuffle(data, seed)[:count])


def choose_private(data: DataSet, count: int, seed: int, *, public: int) -> ImageSet:
    """Choose `count` training images of the client's own, none of which is among the first `public` public ones."""
    free = len(data.train) - public
    if count > free:
        raise SettingsError(
            f"{count} private images beside {public} public ones: the {len(data.train)} training images of "
            f"{data.name} leave {max(free, 0)}; ask for fewer of either"
        )
    return data.train.take(shuffle(data, seed)[len(data.train) - count :])


def shuffle(data: DataSet, seed: int) -> Tensor:
    """Order the training images at random: public images come from the front, private ones from the back."""
    return torch.randperm(len(data.train), generator=generator(seed, "floor", "images"))
