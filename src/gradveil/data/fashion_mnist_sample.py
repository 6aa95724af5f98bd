"""The bundled sample: 5,000 training and 1,000 test images of Fashion-MNIST (Xiao et al., 2017; MIT licence)."""

import hashlib
import io
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from gradveil.data.base import DataSet, ImageSet, Progress, channel_statistics, silent
from gradveil.errors import DataError

SHA256 = "1aca754ac5e284d470d151040f7170e0f0fdbb6bbcf8d68aab41f079c1d492f0"
CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
FILE = files("gradveil.data").joinpath("sample/fashion-mnist-sample.npz")


def find(root: Path | None = None) -> Path:  # noqa: ARG001
    """Return the file that comes with gradveil, whatever the root."""
    return Path(str(FILE))


def load(root: Path | None = None, progress: Progress = silent) -> DataSet:  # noqa: ARG001
    """Load the sample that comes with gradveil, after checking its hash."""
    return parse(FILE.read_bytes())


def parse(content: bytes) -> DataSet:
    """Turn the bytes of the sample file into a data set."""
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != SHA256:
        raise DataError(
            f"the bundled sample is damaged: its SHA-256 is {sha256[:12]}…, it should be {SHA256[:12]}…; "
            "reinstall gradveil"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        train, test = (
            ImageSet(
                torch.from_numpy(arrays[f"{split}_images"]).unsqueeze(1),
                torch.from_numpy(arrays[f"{split}_labels"]).long(),
            )
            for split in ("train", "test")
        )
    mean, std = channel_statistics(train.images)
    return DataSet("fashion-mnist-sample", train, test, CLASS_NAMES, mean, std)
