"""Which training images anyone may have, and which belong to a client."""

import torch
from torch import Tensor

from gradveil.data.base import DataSet
from gradveil.errors import SettingsError
from gradveil.rng import generator
from gradveil.types import Batch


def choose_public(data: DataSet, count: int, seed: int) -> Batch:
    """Choose the training images that stand for what anyone can have; all of them if there are no more."""
    return take(data, order(data, seed)[:count])


def choose_private(data: DataSet, count: int, public: int, seed: int) -> Batch:
    """Choose training images for a client itself; none of them is among the `public` ones of the same seed."""
    chosen = order(data, seed)[public:][-count:]
    if len(chosen) < count:
        raise SettingsError(
            f"{count} images for a client beside {public} public ones, and there are {len(data.train)} training images"
        )
    return take(data, chosen)


def order(data: DataSet, seed: int) -> Tensor:
    return torch.randperm(len(data.train), generator=generator(seed, "floor", "images"))


def take(data: DataSet, places: Tensor) -> Batch:
    chosen = data.train.take(places)
    return Batch(chosen.images, chosen.labels)
