"""Attacks: how an honest-but-curious receiver rebuilds images from an update."""

from gradveil.attacks.base import Attack
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.recipes import ATTACKS, find_attack

__all__ = ["ATTACKS", "Attack", "GradientMatching", "find_attack"]
