"""The audit: real attacks against exactly what is released, per image, beside the chance level."""

from gradveil.audit.rows import Row
from gradveil.audit.run import AuditReport, Picture, run_audit
from gradveil.audit.settings import AuditSettings
from gradveil.audit.summary import Summary, explain, headline, summarise

__all__ = [
    "AuditReport",
    "AuditSettings",
    "Picture",
    "Row",
    "Summary",
    "explain",
    "headline",
    "run_audit",
    "summarise",
]
