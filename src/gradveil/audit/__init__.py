"""The audit: real attacks against exactly what is released, per image, beside the chance level.

The package can be called: `gradveil.audit(model, loader)` is `audit_model`.
"""

import sys
from types import ModuleType

from gradveil.audit.audit import Audit, describe_work, run_audit
from gradveil.audit.canaries import CanaryReading
from gradveil.audit.candidates import Candidates, choose_candidates, rebuilt_pair
from gradveil.audit.capsules import CapsuleAudit, load_capsules
from gradveil.audit.estimate import estimate_audit
from gradveil.audit.floors import Chance, Floors, FloorSettings, make_floors
from gradveil.audit.gate import Leak, find_leaks
from gradveil.audit.jobs import Attacked, CellJob, TrainJob
from gradveil.audit.kept import KeptWork, discard_work, is_unfinished, opened_work, read_work
from gradveil.audit.own import FRAMES, add_control, audit_model
from gradveil.audit.presets import PRESETS, Preset, change_settings, find_preset
from gradveil.audit.release import Scene, Share
from gradveil.audit.report import AUDIT_VERSION, VERSIONS, AuditReport, Picture, describe_threat
from gradveil.audit.rule import WORDS, Kind, Outcome, Rule
from gradveil.audit.scoring import Cell, Row, Scorer
from gradveil.audit.settings import DEFAULT_ARMS, AuditSettings
from gradveil.audit.summary import Summary, summarise
from gradveil.audit.verdict import Verdict, headline, judge

__all__ = [
    "AUDIT_VERSION",
    "DEFAULT_ARMS",
    "FRAMES",
    "PRESETS",
    "VERSIONS",
    "WORDS",
    "Attacked",
    "Audit",
    "AuditReport",
    "AuditSettings",
    "CanaryReading",
    "Candidates",
    "CapsuleAudit",
    "Cell",
    "CellJob",
    "Chance",
    "FloorSettings",
    "Floors",
    "KeptWork",
    "Kind",
    "Leak",
    "Outcome",
    "Picture",
    "Preset",
    "Row",
    "Rule",
    "Scene",
    "Scorer",
    "Share",
    "Summary",
    "TrainJob",
    "Verdict",
    "add_control",
    "audit_model",
    "change_settings",
    "choose_candidates",
    "describe_threat",
    "describe_work",
    "discard_work",
    "estimate_audit",
    "find_leaks",
    "find_preset",
    "headline",
    "is_unfinished",
    "judge",
    "load_capsules",
    "make_floors",
    "opened_work",
    "read_work",
    "rebuilt_pair",
    "run_audit",
    "summarise",
]


class CallablePackage(ModuleType):
    """A package that can be called.

    `gradveil.audit` is the name of this package, and the one call that most people need has no better name. Python
    looks a call up in the type, so the package gets a type of its own.
    """

    __call__ = staticmethod(audit_model)


sys.modules[__name__].__class__ = CallablePackage
