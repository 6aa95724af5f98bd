"""R, Table 5: the hybrid of CIFAR-100 on Tiny-ImageNet."""

from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PolicyTable, arms_of
from gradveil.experiments.paper.published import POLICIES, TABLE_5
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.units import Unit


def make_table(scale: Scale) -> PolicyTable:
    every = arms_of(POLICIES["a"])
    arms = {label: every[label] for label in (NONE, HYBRID)}
    return PolicyTable("Table 5: the hybrid of CIFAR-100 on Tiny-ImageNet", scale.tiny, arms, TABLE_5)


def list_units(scale: Scale) -> list[Unit]:
    return make_table(scale).units(scale)


def render(material: Material) -> Rendering:
    return Rendering(make_table(material.scale).render(material))


TABLE = Experiment("table-5", "Table 5: the hybrid of CIFAR-100 on Tiny-ImageNet", list_units, render)
