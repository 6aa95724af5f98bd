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
from gradveil.experiments.local_step_tables import render_markdown as render_local_steps
from gradveil.experiments.local_steps import JOURNAL as LOCAL_STEPS_JOURNAL
from gradveil.experiments.local_steps import PARTS as LOCAL_STEPS_PARTS
from gradveil.experiments.local_steps import run_local_steps
from gradveil.experiments.told_defences import ARMS as TOLD_ARMS
from gradveil.experiments.told_defences import ToldStudy
from gradveil.experiments.told_defences import trials as told_trials
from gradveil.experiments.told_tables import write_told_tables
from gradveil.experiments.verdict_study import DATA as VERDICT_DATA
from gradveil.experiments.verdict_study import PARTS as VERDICT_PARTS
from gradveil.experiments.verdict_study import VerdictStudy
from gradveil.experiments.verdict_tables import render_markdown as render_verdict

__all__ = [
    "ATTACKER_PARTS",
    "FEDERATED_PARTS",
    "LOCAL_STEPS_JOURNAL",
    "LOCAL_STEPS_PARTS",
    "TOLD_ARMS",
    "VERDICT_DATA",
    "VERDICT_PARTS",
    "AttackerStudy",
    "ToldStudy",
    "VerdictStudy",
    "attacker_cells",
    "prepare_federated_study",
    "render_attackers",
    "render_local_steps",
    "render_verdict",
    "run_federated_study",
    "run_local_steps",
    "told_trials",
    "write_federated_tables",
    "write_told_tables",
]
