"""P and R, Table 2: six attacks against no policy and against the hybrid, CIFAR-100 with ResNet20."""

from collections.abc import Sequence

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, attack_units, train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, HYBRID, NONE, arms_of, describe_network
from gradveil.experiments.paper.published import ATTACKS, POLICIES, TABLE_2
from gradveil.experiments.paper.quirks import CORRECTED, FAITHFUL, undefended_arm
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import (
    ABOUT_EXCESS,
    EXCESS,
    write_count,
    write_excess,
    write_interval,
    write_mean,
    write_psnr,
    write_published,
)
from gradveil.experiments.paper.units import AttackUnit, Unit
from gradveil.experiments.paper.verdicts import Finding, judge_protection

ARMS = {label: arms_of(POLICIES["a"])[label][0] for label in (NONE, HYBRID)}
FAITHFUL_COLUMNS = (
    *("attack", "P: none", "R: none", "none", "P: hybrid", "R: hybrid", "hybrid", "n"),
    *("floor: none", "floor: hybrid"),
)
CORRECTED_COLUMNS = (
    *("attack", "steps", "gain: `crop-flip`, dB", "gain: hybrid, dB", "n"),
    *(f"{EXCESS}: `crop-flip`", "hybrid", "difference"),
)


def attacks_of(label: str, attack: str, quirks: Sequence[str], scale: Scale) -> list[AttackUnit]:
    """List the attacks of a cell."""
    models = train_units(scale.networks["a"], ARMS[label], scale)
    arm = undefended_arm(quirks) if label == NONE else ARMS[label]
    return attack_units(models, arm, attack, scale, quirks=quirks)


def cell_of(label: str, attack: str, quirks: Sequence[str], material: Material) -> Cell:
    return Cell.of(attacks_of(label, attack, quirks, material.scale), material.results)


def list_units(scale: Scale) -> list[Unit]:
    return [
        unit
        for attack in ATTACKS
        for quirks in (FAITHFUL, CORRECTED)
        for label in ARMS
        for unit in attacks_of(label, attack, quirks, scale)
    ]


def faithful_line(attack: str, material: Material) -> list[str]:
    cells = {label: cell_of(label, attack, FAITHFUL, material) for label in ARMS}
    shown = [[*write_published(TABLE_2[attack][label]), write_psnr(cell)] for label, cell in cells.items()]
    floors = [write_mean(cell, "floor_transformed") for cell in cells.values()]
    return [ATTACKS[attack], *shown[0], *shown[1], write_count(cells[HYBRID]), *floors]


def corrected_line(attack: str, material: Material) -> list[str]:
    control, hybrid = (cell_of(label, attack, CORRECTED, material) for label in ARMS)
    steps = material.scale.steps.get(attack)
    return [
        ATTACKS[attack],
        "its own" if steps is None else f"{steps:,}",
        write_interval(control.interval("gain")),
        write_interval(hybrid.interval("gain")),
        write_count(hybrid),
        write_excess(control),
        write_excess(hybrid),
        write_interval(control.less(hybrid, "excess")),
    ]


def judge(attack: str, material: Material) -> Finding:
    """Judge one attack: does the hybrid take what it finds over wrong updates?"""
    control, hybrid = (cell_of(label, attack, CORRECTED, material) for label in ARMS)
    return judge_protection(control.interval("excess"), hybrid.interval("excess"), control.less(hybrid, "excess"))


def render(material: Material) -> Rendering:
    return Rendering(
        [
            "## Table 2: six attacks",
            "",
            describe_network(material.scale.networks["a"], material.scale),
            "",
            "As published: no policy as it is, the hybrid after crop and flip; for the distances that depend on scale, "
            "half the gradient was released. PSNR against T(x), ± standard deviation over images.",
            "",
            *write_table(FAITHFUL_COLUMNS, [faithful_line(attack, material) for attack in ATTACKS]),
            "",
            f"Corrected: gains over the floor, pixel by pixel; the control is `{BASE}`; ± half the 95% interval. "
            f"{ABOUT_EXCESS}",
            "",
            *write_table(CORRECTED_COLUMNS, [corrected_line(attack, material) for attack in ATTACKS]),
            "",
        ]
    )


TABLE = Experiment("table-2", "Table 2: six attacks against the hybrid", list_units, render)
