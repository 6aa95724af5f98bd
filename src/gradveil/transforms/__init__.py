"""The transformation library: operations, policies, base augmentation."""

from gradveil.transforms.augmentation import BaseAugmentation
from gradveil.transforms.base import BatchTransform
from gradveil.transforms.catalogue import CATALOGUE, CATALOGUES, OPERATIONS, Catalogue, Operation, Transform
from gradveil.transforms.dataset import PolicyDataset
from gradveil.transforms.grammar import from_record, parse_policy
from gradveil.transforms.offline import transform_array, transform_arrays
from gradveil.transforms.parameters import CropFlipDraws, PolicyDraws
from gradveil.transforms.policy import Policy, PolicySet, Shared, share_transforms

__all__ = [
    "CATALOGUE",
    "CATALOGUES",
    "OPERATIONS",
    "BaseAugmentation",
    "BatchTransform",
    "Catalogue",
    "CropFlipDraws",
    "Operation",
    "Policy",
    "PolicyDataset",
    "PolicyDraws",
    "PolicySet",
    "Shared",
    "Transform",
    "from_record",
    "parse_policy",
    "share_transforms",
    "transform_array",
    "transform_arrays",
]
