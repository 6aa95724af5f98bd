"""Data sets by name, from files or from torch; the choice of images; partitions; policies on stored images."""

from gradveil.data.base import DataSet, ImageSet, Progress, channel_statistics, list_names, silent
from gradveil.data.choice import (
    IMAGE_CHOICE,
    choose_attacked,
    choose_private,
    choose_public,
    choose_scored,
    spread,
    stratify,
)
from gradveil.data.conversion import from_torch
from gradveil.data.counts import Counts, count_images
from gradveil.data.partition import Partition, parse_partition, partition_images
from gradveil.data.registry import DATASETS, FORMS, find_data, find_source, get, load
from gradveil.data.stored import transform_stored

__all__ = [
    "DATASETS",
    "FORMS",
    "IMAGE_CHOICE",
    "Counts",
    "DataSet",
    "ImageSet",
    "Partition",
    "Progress",
    "channel_statistics",
    "choose_attacked",
    "choose_private",
    "choose_public",
    "choose_scored",
    "count_images",
    "find_data",
    "find_source",
    "from_torch",
    "get",
    "list_names",
    "load",
    "parse_partition",
    "partition_images",
    "silent",
    "spread",
    "stratify",
    "transform_stored",
]
