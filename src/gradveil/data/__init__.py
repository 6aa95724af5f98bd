"""Data sets by name."""

from collections.abc import Callable

from gradveil.data import fashion_mnist_sample
from gradveil.data.base import DataSet, ImageSet, channel_statistics
from gradveil.errors import UnknownNameError

DATASETS: dict[str, Callable[[], DataSet]] = {
    "fashion-mnist-sample": fashion_mnist_sample.load,
}


def load(name: str) -> DataSet:
    """Load the data set called `name`."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, DATASETS)
    return DATASETS[name]()


__all__ = ["DATASETS", "DataSet", "ImageSet", "channel_statistics", "load"]
