"""Arms: what a client does, written as one string.

`none` is nothing at all, `crop-flip` the base augmentation alone, `policy:X` the base augmentation and then policy X,
and `policy:X,no-base` policy X alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gradveil.defences.base import Defence
from gradveil.defences.transform import CropFlip, PolicyDefence
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.transforms import parse_policy

DEFENCES: dict[str, Callable[[str], Defence]] = {
    "policy": lambda text: PolicyDefence(parse_policy(text)),
}
NO_BASE = "no-base"
WITHOUT_PARAMETERS: dict[str, tuple[Defence, ...]] = {"none": (), "crop-flip": (CropFlip(),)}


@dataclass(frozen=True)
class Arm:
    """A named list of defences."""

    name: str
    defences: tuple[Defence, ...]


def parse_arm(text: str) -> Arm:
    """Turn the string of an arm into its defences, in the order in which they act.

    >>> parse_arm("policy:3-1-7").defences
    (CropFlip(crop-flip), PolicyDefence(policy:3-1-7))
    """
    if text in WITHOUT_PARAMETERS:
        return Arm(text, WITHOUT_PARAMETERS[text])
    parts = text.split(",")
    defences = [parse_defence(part) for part in parts if part != NO_BASE]
    if not defences:
        raise SettingsError(f"arm '{text}' names no defence: write none, crop-flip, policy:X or policy:X,{NO_BASE}")
    base = () if NO_BASE in parts else (CropFlip(),)
    return Arm(text, (*base, *defences))


def parse_defence(text: str) -> Defence:
    """Turn `name:parameters` into a defence."""
    name, _, parameters = text.partition(":")
    if name not in DEFENCES:
        raise UnknownNameError("defence", name, ["none", "crop-flip", *(f"{key}:X" for key in DEFENCES)])
    return DEFENCES[name](parameters)
