"""Defences that transform images before the gradient."""

import torch

from gradveil.defences import CropFlip, PolicyDefence
from gradveil.rng import generator
from gradveil.transforms import BaseAugmentation, parse_policy
from gradveil.types import Batch


def batch() -> Batch:
    images = torch.randint(0, 256, (6, 3, 12, 12), dtype=torch.uint8, generator=generator(0))
    return Batch(images, torch.arange(6))


def test_crop_flip_is_the_base_augmentation() -> None:
    expected = BaseAugmentation().transform(batch().images, generator(4))
    assert torch.equal(CropFlip().batch(batch(), generator(4)).images, expected)


def test_a_policy_replaces_every_image_by_one_draw() -> None:
    policies = parse_policy("3-1-7+43-18-18")
    fed = PolicyDefence(policies).batch(batch(), generator(4))
    assert torch.equal(fed.images, policies.transform(batch().images, generator(4)))
    assert torch.equal(fed.labels, batch().labels)
    assert PolicyDefence(policies).known_policies() == policies
