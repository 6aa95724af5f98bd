"""Collaborative training on Flower. A module is imported when one of its names is first used: Flower is optional."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradveil.federated.estimate import estimate_federated
from gradveil.federated.outcomes import Dropped, FederatedResult, RoundOutcome
from gradveil.federated.participants import ClientWork, Participants
from gradveil.federated.ring import run_decentralised
from gradveil.federated.settings import FEDAVG, Algorithm, FederatedSettings
from gradveil.federated.state import is_unfinished

if TYPE_CHECKING:
    from gradveil.federated.app_model import AppModel
    from gradveil.federated.capture import CaptureMod, CapturingStrategy
    from gradveil.federated.client_app import ParticipantApp
    from gradveil.federated.coordinator import Recording
    from gradveil.federated.deployment import prepare_deployment
    from gradveil.federated.gate import GateMod
    from gradveil.federated.in_process import InProcessGrid
    from gradveil.federated.memory import remember
    from gradveil.federated.mods import DefenceMod
    from gradveil.federated.observer import find_capsules, observe
    from gradveil.federated.run import EngineName, run_federated
    from gradveil.federated.strategy import CheckedStrategy

MODULES = {
    "app_model": ("AppModel",),
    "capture": ("CaptureMod", "CapturingStrategy"),
    "gate": ("GateMod",),
    "memory": ("remember",),
    "mods": ("DefenceMod",),
    "observer": ("find_capsules", "observe"),
    "client_app": ("ParticipantApp",),
    "coordinator": ("Recording",),
    "deployment": ("prepare_deployment",),
    "in_process": ("InProcessGrid",),
    "run": ("EngineName", "run_federated"),
    "strategy": ("CheckedStrategy",),
}


def __getattr__(name: str) -> Any:
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"gradveil.federated.{module}"), name)
    raise AttributeError(f"module 'gradveil.federated' has no attribute '{name}'")


__all__ = [
    "FEDAVG",
    "Algorithm",
    "AppModel",
    "CaptureMod",
    "CapturingStrategy",
    "CheckedStrategy",
    "ClientWork",
    "DefenceMod",
    "Dropped",
    "EngineName",
    "FederatedResult",
    "FederatedSettings",
    "GateMod",
    "InProcessGrid",
    "ParticipantApp",
    "Participants",
    "Recording",
    "RoundOutcome",
    "estimate_federated",
    "find_capsules",
    "is_unfinished",
    "observe",
    "prepare_deployment",
    "remember",
    "run_decentralised",
    "run_federated",
]
