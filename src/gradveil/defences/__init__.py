"""Defences: what a client does before anything leaves it."""

from gradveil.defences.arms import DEFENCES, Arm, expand_arms, parse_arm, parse_defence, parse_defences
from gradveil.defences.base import (
    Defence,
    changes_gradient,
    compute_defended,
    defend_batch,
    defend_model,
    defend_release,
    defend_update,
    known_deviation,
)
from gradveil.defences.clip import Clip
from gradveil.defences.dpsgd import DPSGD
from gradveil.defences.edits import list_edits
from gradveil.defences.guarantee import Guarantee, guarantee_of, success_bound
from gradveil.defences.mixing import InstaHide, Mixup
from gradveil.defences.noise import Gaussian, Laplacian
from gradveil.defences.precode import Precode
from gradveil.defences.prune import Prune, TopK
from gradveil.defences.quantise import Quantise, Sign
from gradveil.defences.soteria import Soteria
from gradveil.defences.transform import CropFlip, PolicyDefence

__all__ = [
    "DEFENCES",
    "DPSGD",
    "Arm",
    "Clip",
    "CropFlip",
    "Defence",
    "Gaussian",
    "Guarantee",
    "InstaHide",
    "Laplacian",
    "Mixup",
    "PolicyDefence",
    "Precode",
    "Prune",
    "Quantise",
    "Sign",
    "Soteria",
    "TopK",
    "changes_gradient",
    "compute_defended",
    "defend_batch",
    "defend_model",
    "defend_release",
    "defend_update",
    "expand_arms",
    "guarantee_of",
    "known_deviation",
    "list_edits",
    "parse_arm",
    "parse_defence",
    "parse_defences",
    "success_bound",
]
