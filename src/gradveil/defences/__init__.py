"""Defences: what a client does before anything leaves it."""

from gradveil.defences.arms import DEFENCES, Arm, parse_arm
from gradveil.defences.base import Defence, defend_batch, defend_release
from gradveil.defences.transform import CropFlip, PolicyDefence

__all__ = [
    "DEFENCES",
    "Arm",
    "CropFlip",
    "Defence",
    "PolicyDefence",
    "defend_batch",
    "defend_release",
    "parse_arm",
]
