"""The transformation library: operations, policies, base augmentation."""

from gradveil.transforms.augmentation import BaseAugmentation, CropFlipDraws
from gradveil.transforms.base import BatchTransform
from gradveil.transforms.catalogue import (
    CATALOGUE,
    CATALOGUES,
    OPERATIONS,
    Catalogue,
    Operation,
    Transform,
    find_catalogue,
)
from gradveil.transforms.dataset import PolicyDataset
from gradveil.transforms.grammar import from_record, parse_policy
from gradveil.transforms.offline import transform_array, transform_arrays
from gradveil.transforms.policy import (
    MAX_STEPS,
    CommonTransforms,
    Policy,
    PolicyDraws,
    PolicySet,
    prefix,
    share_transforms,
)

__all__ = [
    "CATALOGUE",
    "CATALOGUES",
    "MAX_STEPS",
    "OPERATIONS",
    "BaseAugmentation",
    "BatchTransform",
    "Catalogue",
    "CommonTransforms",
    "CropFlipDraws",
    "Operation",
    "Policy",
    "PolicyDataset",
    "PolicyDraws",
    "PolicySet",
    "Transform",
    "find_catalogue",
    "from_record",
    "parse_policy",
    "prefix",
    "share_transforms",
    "transform_array",
    "transform_arrays",
]
