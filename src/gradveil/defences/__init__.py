"""Defences: what a client does before anything leaves it."""

from gradveil.defences.arms import (
    DEFENCES,
    AnyArm,
    Arm,
    expand_arms,
    find_arm,
    parse_arm,
    parse_defence,
    parse_defences,
)
from gradveil.defences.base import (
    HOOKS,
    NOTHING_YET,
    Compute,
    Defence,
    Hook,
    build_defended,
    compute_defended,
    defend_batch,
    defend_model,
    defend_release,
    has_hook,
    known_deviation,
    known_model,
    known_policies,
    known_release,
    known_smooth,
    known_views,
    shows_draws,
)
from gradveil.defences.censor import Censor
from gradveil.defences.clip import Clip
from gradveil.defences.dpsgd import DPSGD
from gradveil.defences.edits import list_edits
from gradveil.defences.guarantee import Guarantee, find_private, guarantee_of
from gradveil.defences.knowledge import SOFTNESS, TINY, KnownRelease, Released, Sizes
from gradveil.defences.mixing import InstaHide, Mixup
from gradveil.defences.noise import Gaussian, Laplacian
from gradveil.defences.oasis import Oasis
from gradveil.defences.percentile import Percentile
from gradveil.defences.precode import Precode
from gradveil.defences.prune import Prune, TopK
from gradveil.defences.quantise import Quantise, Sign
from gradveil.defences.soteria import Soteria
from gradveil.defences.transform import CropFlip, PolicyDefence

__all__ = [
    "DEFENCES",
    "DPSGD",
    "HOOKS",
    "NOTHING_YET",
    "SOFTNESS",
    "TINY",
    "AnyArm",
    "Arm",
    "Censor",
    "Clip",
    "Compute",
    "CropFlip",
    "Defence",
    "Gaussian",
    "Guarantee",
    "Hook",
    "InstaHide",
    "KnownRelease",
    "Laplacian",
    "Mixup",
    "Oasis",
    "Percentile",
    "PolicyDefence",
    "Precode",
    "Prune",
    "Quantise",
    "Released",
    "Sign",
    "Sizes",
    "Soteria",
    "TopK",
    "build_defended",
    "compute_defended",
    "defend_batch",
    "defend_model",
    "defend_release",
    "expand_arms",
    "find_arm",
    "find_private",
    "guarantee_of",
    "has_hook",
    "known_deviation",
    "known_model",
    "known_policies",
    "known_release",
    "known_smooth",
    "known_views",
    "list_edits",
    "parse_arm",
    "parse_defence",
    "parse_defences",
    "shows_draws",
]
