"""Claim 3: policies that were searched on one data set suit another."""

from gradveil.experiments.paper.claims import make_claim
from gradveil.experiments.paper.experiment import Claim, Material
from gradveil.experiments.paper.published import PAIRS
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.table_4 import SOURCES, make_table
from gradveil.experiments.paper.units import Unit
from gradveil.experiments.paper.verdicts import Finding, combine


def list_units(scale: Scale) -> list[Unit]:
    return [unit for letter in SOURCES for unit in make_table(letter, scale).units(scale)]


def judge(material: Material) -> Finding:
    """Judge the transferred hybrid of both networks."""
    parts = [part for letter in SOURCES for part in make_table(letter, material.scale).parts(PAIRS[letter], material)]
    return combine(parts)


CLAIM = make_claim(
    "claim-3",
    "Claim 3: policies are transferable",
    Claim(
        "The found policies are highly transferable: those searched on CIFAR-100 suit Fashion-MNIST.",
        "yes: slightly worse than policies searched there, still very effective (Table 4).",
        "no: the transferred policies are not effective (Table 4, experiment 6).",
        "as for claim 1, with the hybrids of CIFAR-100 on Fashion-MNIST, both networks.",
        judge,
    ),
    list_units,
)
