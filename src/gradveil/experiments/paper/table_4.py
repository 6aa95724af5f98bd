"""P and R, Table 4: policies that were searched on CIFAR-100, used on Fashion-MNIST."""

from functools import partial

from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import PolicyTable, arms_of
from gradveil.experiments.paper.published import PAIRS, POLICIES, TABLE_4
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.units import Unit

SOURCES = {"c": "a", "d": "b"}
"""Where the policies of each pair come from: the same network on CIFAR-100."""


def make_table(letter: str, scale: Scale) -> PolicyTable:
    """Make the table of one network."""
    part = "ab"["cd".index(letter)]
    title = f"Table 4{part}: policies of {PAIRS[SOURCES[letter]]} on {PAIRS[letter]}"
    return PolicyTable(title, scale.networks[letter], arms_of(POLICIES[SOURCES[letter]]), TABLE_4[letter])


def list_units(letter: str, scale: Scale) -> list[Unit]:
    return make_table(letter, scale).units(scale)


def render(letter: str, material: Material) -> Rendering:
    return Rendering(make_table(letter, material.scale).render(material))


TABLES = [
    Experiment(
        f"table-4{part}",
        f"Table 4{part}: policies of CIFAR-100 on {PAIRS[letter]}",
        partial(list_units, letter),
        partial(render, letter),
    )
    for part, letter in zip("ab", SOURCES, strict=True)
]
