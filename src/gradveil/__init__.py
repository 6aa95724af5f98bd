"""gradveil: what do the updates shared in federated learning give away, and what stops it?

    import gradveil

    data = gradveil.load_data("folder:photos")
    report = gradveil.audit(model, data, arms=["policy:3-1-7"])
    report.save("report.html")
    found = gradveil.search(model, data)
    trained = gradveil.train(model, data, arm=f"policy:{found.hybrid}")

Names are imported when they are first used. `gradveil.audit` and `gradveil.search` are packages that can be called, so
that the names mean the same in whatever order things are imported; `gradveil.train` is `training.train_model`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradveil.attacks import ATTACKS, Attack
    from gradveil.audit import AuditReport, AuditSettings

    # At run time `audit` and `search` are packages that can be called; type checkers know no such package.
    from gradveil.audit import audit_model as audit
    from gradveil.data import DataSet
    from gradveil.data import load as load_data
    from gradveil.defences import DEFENCES, Arm, Defence, parse_arm
    from gradveil.errors import GradveilError
    from gradveil.models import MODELS
    from gradveil.search import SearchResult, SearchSettings
    from gradveil.search import search_policies as search
    from gradveil.training import TrainingResult, TrainingSettings
    from gradveil.training import train_model as train
    from gradveil.transforms import Policy, PolicySet, Transform, parse_policy

__version__ = "0.1.0"
PLACES = {
    "ATTACKS": "attacks",
    "Attack": "attacks",
    "AuditReport": "audit",
    "AuditSettings": "audit",
    "DataSet": "data",
    "load_data": "data:load",
    "DEFENCES": "defences",
    "Arm": "defences",
    "Defence": "defences",
    "parse_arm": "defences",
    "GradveilError": "errors",
    "MODELS": "models",
    "SearchResult": "search",
    "SearchSettings": "search",
    "TrainingResult": "training",
    "TrainingSettings": "training",
    "train": "training:train_model",
    "Policy": "transforms",
    "PolicySet": "transforms",
    "Transform": "transforms",
    "parse_policy": "transforms",
}
"""Where each name is, and what it is called there if that is something else."""
CALLABLE = ("audit", "search")
"""Packages that can be called."""
__all__ = [
    "ATTACKS",
    "DEFENCES",
    "MODELS",
    "Arm",
    "Attack",
    "AuditReport",
    "AuditSettings",
    "DataSet",
    "Defence",
    "GradveilError",
    "Policy",
    "PolicySet",
    "SearchResult",
    "SearchSettings",
    "TrainingResult",
    "TrainingSettings",
    "Transform",
    "__version__",
    "audit",
    "load_data",
    "parse_arm",
    "parse_policy",
    "search",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the command line starts without torch."""
    if name in CALLABLE:
        return import_module(f"gradveil.{name}")
    if name not in PLACES:
        raise AttributeError(f"module 'gradveil' has no attribute '{name}'")
    room, _, there = PLACES[name].partition(":")
    return getattr(import_module(f"gradveil.{room}"), there or name)


def __dir__() -> list[str]:
    return sorted(__all__)
