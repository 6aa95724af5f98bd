"""Attacks: how an honest-but-curious receiver rebuilds images from an update."""

from gradveil.attacks.analytic import Analytic, linear_layers, read_inputs
from gradveil.attacks.base import Attack
from gradveil.attacks.ensemble import Ensemble
from gradveil.attacks.joint import Sighting, attack_together
from gradveil.attacks.judging import matching_loss
from gradveil.attacks.labels import find_labels, restore_counts, restore_labels
from gradveil.attacks.matching import GradientMatching
from gradveil.attacks.recipes import ATTACKS, STANDARD_VERSION, find_attack, with_steps

__all__ = [
    "ATTACKS",
    "STANDARD_VERSION",
    "Analytic",
    "Attack",
    "Ensemble",
    "GradientMatching",
    "Sighting",
    "attack_together",
    "find_attack",
    "find_labels",
    "linear_layers",
    "matching_loss",
    "read_inputs",
    "restore_counts",
    "restore_labels",
    "with_steps",
]
