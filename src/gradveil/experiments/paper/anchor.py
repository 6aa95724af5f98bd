"""One cell of Table 1a at the papers' own width, as far as that trains on a processor."""

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, accuracy_of, attack_units, train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, PUBLISHED_ATTACK, describe_network
from gradveil.experiments.paper.scales import Network, Scale
from gradveil.experiments.paper.table_1 import SHOWN
from gradveil.experiments.paper.text import (
    ABOUT_EXCESS,
    EXCESS,
    write_count,
    write_excess,
    write_interval,
    write_mean,
    write_percent,
    write_psnr,
)
from gradveil.experiments.paper.units import AttackUnit, Unit

ARMS = ("none", BASE, f"policy:{SHOWN}")
COLUMNS = ("arm", "PSNR", "chance floor", "gain at T(x), dB", EXCESS, "n")


def attacks_of(arm: str, network: Network, scale: Scale) -> list[AttackUnit]:
    """Attack an arm on the model that was trained without a policy."""
    models = train_units(network, BASE, scale)
    return attack_units(models, arm, PUBLISHED_ATTACK, scale, images=scale.anchor_images)


def list_units(scale: Scale) -> list[Unit]:
    network = scale.anchor
    return [] if network is None else [unit for arm in ARMS for unit in attacks_of(arm, network, scale)]


def render(material: Material) -> Rendering:
    """Show the cell; of few images no spread is given."""
    network, scale = material.scale.anchor, material.scale
    if network is None:
        return Rendering([f"The scale `{scale.name}` has no anchor.", ""])
    rows = []
    for arm in ARMS:
        cell = Cell.of(attacks_of(arm, network, scale), material.results)
        floor, gain = write_mean(cell, "floor_transformed"), write_interval(cell.interval("gain"))
        rows.append([f"`{arm}`", write_psnr(cell), floor, gain, write_excess(cell), write_count(cell)])
    accuracy = write_percent(accuracy_of(train_units(network, BASE, scale), material.results))
    return Rendering(
        [
            f"{describe_network(network, scale)} All arms are attacked on the model that was trained without a policy; "
            f"its test accuracy in percent: {accuracy}. {ABOUT_EXCESS}",
            "",
            *write_table(COLUMNS, rows),
            "",
        ]
    )


EXPERIMENT = Experiment("anchor", "Table 1a: an anchor at the papers' own width", list_units, render)
