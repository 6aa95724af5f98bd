"""Presets: settings with a name and a version. A preset never changes; another version gets another number."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gradveil.audit.settings import AuditSettings
from gradveil.errors import UnknownNameError

PHASES = ("init", "epoch-1", "final")


@dataclass(frozen=True)
class Preset:
    """Named settings, and what they are for."""

    name: str
    version: int
    purpose: str
    settings: AuditSettings

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("quick", 1, "a first look in minutes; 8 images can show a leak, not its absence", AuditSettings()),
        Preset(
            "standard",
            1,
            "the ensemble of attacks on 20 images in three phases",
            AuditSettings(images=20, phases=PHASES, attacks=("standard",)),
        ),
        Preset(
            "full",
            1,
            "64 images, enough to say that no leak was found; for batches of 8 run it again with --images-per-client 8",
            AuditSettings(images=64, phases=PHASES, attacks=("standard",)),
        ),
    )
}
"""`full` has one batch size, because an audit has one: each batch size is an audit of its own."""


def find_preset(name: str) -> AuditSettings:
    """Return the settings of a preset; they name it."""
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    preset = PRESETS[name]
    return replace(preset.settings, preset=str(preset))


def change_settings(settings: AuditSettings, changes: Mapping[str, Any]) -> AuditSettings:
    """Change settings; if they came from a preset, the name of the preset says what was changed.

    >>> change_settings(find_preset("quick"), {"images": 4, "seed": 1}).preset
    'quick-1 with another images'
    """
    changed = replace(settings, **changes)
    differing = [name for name in changes if name not in FREE and getattr(changed, name) != getattr(settings, name)]
    if settings.preset is None or not differing:
        return changed
    before, _, others = settings.preset.partition(" with another ")
    names = dict.fromkeys([*(others.split(", ") if others else ()), *differing])
    return replace(changed, preset=f"{before} with another {', '.join(names)}")


FREE = ("data", "model", "seed", "canaries", "control", "checkpoint", "code")
"""What a preset leaves open."""
