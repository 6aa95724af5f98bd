"""Collaborative training on Flower. A module is imported when one of its names is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradveil.federated.app_model import AppModel
    from gradveil.federated.capture import CaptureMod, CapturingStrategy
    from gradveil.federated.gate import GateMod
    from gradveil.federated.memory import remember
    from gradveil.federated.mods import DefenceMod

MODULES = {
    "app_model": ("AppModel",),
    "capture": ("CaptureMod", "CapturingStrategy"),
    "gate": ("GateMod",),
    "memory": ("remember",),
    "mods": ("DefenceMod",),
}


def __getattr__(name: str) -> Any:
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"gradveil.federated.{module}"), name)
    raise AttributeError(f"module 'gradveil.federated' has no attribute '{name}'")


__all__ = ["AppModel", "CaptureMod", "CapturingStrategy", "DefenceMod", "GateMod", "remember"]
