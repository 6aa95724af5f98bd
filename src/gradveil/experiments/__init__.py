"""Published tables and figures, and our own: what runs, and how it renders."""

from gradveil.experiments.attacker_tables import render_markdown as render_attackers
from gradveil.experiments.attackers import PARTS as ATTACKER_PARTS
from gradveil.experiments.attackers import AttackerStudy
from gradveil.experiments.attackers import cells as attacker_cells
from gradveil.experiments.federated_parts import (
    FEDERATED_PARTS,
    prepare_federated_study,
    run_federated_study,
    write_federated_tables,
)
from gradveil.experiments.verdict_study import DATA as VERDICT_DATA
from gradveil.experiments.verdict_study import PARTS as VERDICT_PARTS
from gradveil.experiments.verdict_study import VerdictStudy
from gradveil.experiments.verdict_tables import render_markdown as render_verdict

__all__ = [
    "ATTACKER_PARTS",
    "FEDERATED_PARTS",
    "VERDICT_DATA",
    "VERDICT_PARTS",
    "AttackerStudy",
    "VerdictStudy",
    "attacker_cells",
    "prepare_federated_study",
    "render_attackers",
    "render_verdict",
    "run_federated_study",
    "write_federated_tables",
]
