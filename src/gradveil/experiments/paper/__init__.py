"""The study of Gao et al. (2021) and its replication: every table, figure and claim beside our own figures."""

from gradveil.experiments.paper.cost import Plan, make_plan
from gradveil.experiments.paper.experiment import Experiment, Material
from gradveil.experiments.paper.pages import LEDGER, write_ledger_file, write_pages
from gradveil.experiments.paper.registry import ALL, EXPERIMENTS, GROUPS, experiments_of
from gradveil.experiments.paper.scales import SCALES, find_scale
from gradveil.experiments.paper.study import JOURNAL, Study
from gradveil.experiments.paper.units import Unit, with_models

__all__ = [
    "ALL",
    "EXPERIMENTS",
    "GROUPS",
    "JOURNAL",
    "LEDGER",
    "SCALES",
    "Experiment",
    "Material",
    "Plan",
    "Study",
    "Unit",
    "experiments_of",
    "find_scale",
    "make_plan",
    "with_models",
    "write_ledger_file",
    "write_pages",
]
