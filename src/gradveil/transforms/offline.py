"""Transform arrays of images once."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gradveil import rng
from gradveil.errors import DataError
from gradveil.transforms.policy import PolicySet

Array = NDArray[Any]


def transform_arrays(arrays: Mapping[str, Array], policies: PolicySet, seed: int) -> dict[str, Array]:
    """Transform the arrays whose name ends in `images`; the others stay as they are."""
    names = [name for name in arrays if name.endswith("images")]
    if not names:
        raise DataError(
            f"the arrays {', '.join(arrays) or '(none)'} hold no images to transform: "
            "there must be one called images, or one whose name ends so, such as train_images"
        )
    return {
        name: transform_array(array, policies, rng.generator(seed, "offline", name)) if name in names else array
        for name, array in arrays.items()
    }


def transform_array(array: Array, policies: PolicySet, generator: torch.Generator) -> Array:
    """Transform uint8 images N×H×W, N×H×W×C or N×C×H×W, and return them in the same form."""
    if array.dtype != np.uint8 or array.ndim not in (3, 4):
        raise DataError(
            f"images are {array.dtype} of shape {array.shape}: they must be uint8 of shape N×H×W, N×H×W×C or N×C×H×W"
        )
    images = torch.from_numpy(np.ascontiguousarray(array))
    if array.ndim == 3:
        return policies.transform(images.unsqueeze(1), generator).squeeze(1).numpy()
    if array.shape[3] in (1, 3):
        return policies.transform(images.permute(0, 3, 1, 2), generator).permute(0, 2, 3, 1).contiguous().numpy()
    return policies.transform(images, generator).numpy()
