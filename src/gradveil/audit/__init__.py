"""The audit: real attacks against exactly what is released, per image, beside the chance level."""

from gradveil.audit.audit import Audit, run_audit
from gradveil.audit.capsules import CapsuleAudit, load_capsules
from gradveil.audit.floors import Floors, make_floors
from gradveil.audit.jobs import Attacked
from gradveil.audit.report import AUDIT_VERSION, VERSIONS, AuditReport, Picture
from gradveil.audit.scoring import Row
from gradveil.audit.settings import DEFAULT_ARMS, AuditSettings
from gradveil.audit.summary import MARGIN, STRIKING, Summary, explain, headline, leaked, summarise, summarise_cell

__all__ = [
    "AUDIT_VERSION",
    "DEFAULT_ARMS",
    "MARGIN",
    "STRIKING",
    "VERSIONS",
    "Attacked",
    "Audit",
    "AuditReport",
    "AuditSettings",
    "CapsuleAudit",
    "Floors",
    "Picture",
    "Row",
    "Summary",
    "explain",
    "headline",
    "leaked",
    "load_capsules",
    "make_floors",
    "run_audit",
    "summarise",
    "summarise_cell",
]
