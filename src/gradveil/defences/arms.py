"""Arms: what a client does, written as one string.

`none` is nothing at all and `crop-flip` the base augmentation alone. Any other arm is a list of defences with commas
between, which act in this order after the base augmentation: `policy:3-1-7`, `policy:3-1-7,gaussian:1e-3`. With the
word `no-base` in the list there is no base augmentation: `gaussian:1e-3,no-base`. So the control of an arm is
`crop-flip`, and that of an arm with `no-base` is `none`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import torch

from gradveil.defences.base import Defence
from gradveil.defences.censor import Censor
from gradveil.defences.clip import Clip
from gradveil.defences.dpsgd import DPSGD
from gradveil.defences.grammar import read
from gradveil.defences.mixing import InstaHide, Mixup
from gradveil.defences.noise import Gaussian, Laplacian
from gradveil.defences.oasis import NAME as OASIS
from gradveil.defences.oasis import read_oasis
from gradveil.defences.percentile import Percentile
from gradveil.defences.precode import Precode
from gradveil.defences.prune import Prune, TopK
from gradveil.defences.quantise import Quantise, Sign
from gradveil.defences.soteria import Soteria
from gradveil.defences.transform import CropFlip, PolicyDefence
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.rng import generator
from gradveil.transforms import CATALOGUE, Policy, PolicySet, parse_policy

NO_BASE = "no-base"
RANDOM = "random-policy"
RANDOM_POLICIES = 10
STEPS = 3
NOTHING: Mapping[str, Defence] = MappingProxyType({})


@dataclass(frozen=True)
class Arm:
    """A named list of defences."""

    name: str
    defences: tuple[Defence, ...]


AnyArm = str | Arm | Defence | Sequence[Defence]
"""What may stand for an arm: its text, itself, one defence, or several in the order in which they act."""


def find_arm(arm: AnyArm) -> Arm:
    """Make an arm of a text, of one defence, or of several in the order in which they act."""
    if isinstance(arm, str):
        return parse_arm(arm)
    if isinstance(arm, Arm):
        return arm
    defences = (arm,) if isinstance(arm, Defence) else tuple(arm)
    return Arm(",".join(map(str, defences)) or "none", defences)


def read_random_policy(text: str) -> Defence:
    """Draw three entries of the catalogue with the seed that is given."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise SettingsError(
            f"{RANDOM}:{text} names no seed: write {RANDOM}:N with a number N of up to 9 digits, or, in an audit, "
            f"{RANDOM} alone for {RANDOM_POLICIES} of them"
        )
    source = generator(int(text), RANDOM)
    indices = torch.randint(len(CATALOGUE), (STEPS,), generator=source).tolist()
    return PolicyDefence(PolicySet((Policy(tuple(indices)),)))


def read_crop_flip(text: str) -> Defence:
    if text:
        raise SettingsError(f"crop-flip:{text}: write crop-flip; it takes no parameters")
    return CropFlip()


DEFENCES: dict[str, Callable[[str], Defence]] = {
    "crop-flip": read_crop_flip,
    "policy": lambda text: PolicyDefence(parse_policy(text)),
    RANDOM: read_random_policy,
    "gaussian": partial(read, Gaussian),
    "laplacian": partial(read, Laplacian),
    "prune": partial(read, Prune),
    "topk": partial(read, TopK),
    "clip": partial(read, Clip),
    "sign": partial(read, Sign),
    "quantise": partial(read, Quantise),
    "mixup": partial(read, Mixup),
    "instahide": partial(read, InstaHide),
    "dpsgd": partial(read, DPSGD),
    "soteria": partial(read, Soteria),
    "precode": partial(read, Precode),
    "censor": partial(read, Censor),
    OASIS: read_oasis,
    "percentile": partial(read, Percentile),
}
"""How the text of each defence, after its name and a colon, is read."""


def parse_arm(text: str, own: Mapping[str, Defence] = NOTHING) -> Arm:
    """Turn the string of an arm into its defences, in the order in which they act.

    `own` holds defences of a person's own by the names that they have in the text.

    >>> parse_arm("policy:3-1-7").defences
    (CropFlip(crop-flip), PolicyDefence(policy:3-1-7))
    """
    if text == "none":
        return Arm(text, ())
    parts = text.split(",")
    defences = parse_defences((part for part in parts if part != NO_BASE), own)
    if not defences:
        raise SettingsError(f"arm '{text}' names no defence: write none, crop-flip, policy:X or policy:X,{NO_BASE}")
    based = NO_BASE in parts or any(isinstance(defence, CropFlip) for defence in defences)
    return Arm(text, defences if based else (CropFlip(), *defences))


def parse_defences(texts: Iterable[str], own: Mapping[str, Defence] = NOTHING) -> tuple[Defence, ...]:
    """Turn `name:parameters` strings into defences that can stand in this order."""
    defences = tuple(own[text] if text in own else parse_defence(text) for text in texts)
    check_order(defences)
    return defences


def check_order(defences: Sequence[Defence]) -> None:
    """Refuse defences that undo one another."""
    computing = [defence for defence in defences if "compute" in defence.hooks]
    for defence in computing[1:]:
        if isinstance(defence, DPSGD):
            raise SettingsError(f"{defence} after {computing[0]} would undo it: name dpsgd first, and once")


def parse_defence(text: str) -> Defence:
    """Turn `name:parameters` into a defence."""
    name, _, parameters = text.partition(":")
    if name not in DEFENCES:
        raise UnknownNameError("defence", name, ["none", *DEFENCES])
    return DEFENCES[name](parameters)


def expand_arms(texts: Iterable[str]) -> tuple[str, ...]:
    """Write out `random-policy` without a seed: ten arms, a random policy each."""
    found: list[str] = []
    for text in texts:
        parts = text.split(",")
        seeds = range(RANDOM_POLICIES) if RANDOM in parts else (None,)
        for seed in seeds:
            found.append(",".join(f"{RANDOM}:{seed}" if part == RANDOM else part for part in parts))
    return tuple(found)
