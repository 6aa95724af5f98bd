"""P, Table 3, and R, Table 6: pruning and noise beside the hybrid, CIFAR-100 with ResNet20."""

from collections.abc import Sequence

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, accuracy_of, attack_units, says_diverged, train_units
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import BASE, HYBRID, PUBLISHED_ATTACK, arms_of, describe_network
from gradveil.experiments.paper.published import POLICIES, TABLE_3
from gradveil.experiments.paper.quirks import CLEAN_GRADIENT, CORRECTED, FAITHFUL, QUIRKS, released_arm
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.text import (
    ABOUT_EXCESS,
    EXCESS,
    write_count,
    write_excess,
    write_interval,
    write_mean,
    write_percent,
    write_psnr,
    write_published,
)
from gradveil.experiments.paper.units import AttackUnit, TrainUnit, Unit

ARMS = {label: arms_of(POLICIES["a"])[HYBRID][0] if label == HYBRID else label for label in TABLE_3}
COLUMNS = ("defence", "P: PSNR / accuracy", "R: PSNR / accuracy", "PSNR", "chance floor", "n", "accuracy, %")
CORRECTED_COLUMNS = (
    "defence",
    "PSNR",
    "gain at T(x), dB",
    "aligned, T(x)",
    "aligned, x",
    EXCESS,
    "n",
    "`crop-flip` − this, dB",
)


def models_of(label: str, scale: Scale) -> list[TrainUnit]:
    return train_units(scale.networks["a"], ARMS[label], scale)


def attacks_of(label: str, quirks: Sequence[str], scale: Scale) -> list[AttackUnit]:
    """List the attacks of a line; the published code attacked a clean gradient of the model it had trained."""
    arm = ARMS[label] if label == HYBRID else released_arm(ARMS[label], quirks)
    return attack_units(models_of(label, scale), arm, PUBLISHED_ATTACK, scale, quirks=quirks)


def control_of(scale: Scale) -> list[AttackUnit]:
    return attack_units(train_units(scale.networks["a"], BASE, scale), BASE, PUBLISHED_ATTACK, scale)


def list_units(scale: Scale) -> list[Unit]:
    lines = [unit for label in ARMS for quirks in (CORRECTED, FAITHFUL) for unit in attacks_of(label, quirks, scale)]
    return [*control_of(scale), *lines]


def faithful_line(label: str, material: Material) -> list[str]:
    cell = Cell.of(attacks_of(label, FAITHFUL, material.scale), material.results)
    models = models_of(label, material.scale)
    diverged = says_diverged(models, material.results)
    return [
        label,
        *write_published(TABLE_3[label]),
        write_psnr(cell),
        write_mean(cell, "floor_transformed"),
        write_count(cell),
        "training diverged" if diverged else write_percent(accuracy_of(models, material.results)),
    ]


def corrected_line(label: str, material: Material) -> list[str]:
    cell = Cell.of(attacks_of(label, CORRECTED, material.scale), material.results)
    control = Cell.of(control_of(material.scale), material.results)
    return [
        label,
        write_psnr(cell),
        write_interval(cell.interval("gain")),
        write_interval(cell.interval("advantage_transformed")),
        write_interval(cell.interval("advantage_original")),
        write_excess(cell),
        write_count(cell),
        write_interval(control.less(cell, "gain")),
    ]


def render(material: Material) -> Rendering:
    return Rendering(
        [
            "## Table 3: other defences",
            "",
            describe_network(material.scale.networks["a"], material.scale),
            "",
            f"As published: {QUIRKS[CLEAN_GRADIENT].published}. PSNR against T(x), ± standard deviation over images.",
            "",
            *write_table(COLUMNS, [faithful_line(label, material) for label in ARMS]),
            "",
            f"Corrected: {QUIRKS[CLEAN_GRADIENT].ours}; the attacker is not told of it. Gains over the chance floor, ± "
            f"half the 95% interval. {ABOUT_EXCESS}",
            "",
            *write_table(CORRECTED_COLUMNS, [corrected_line(label, material) for label in ARMS]),
            "",
        ]
    )


TABLE = Experiment("table-3", "Table 3: other defences beside the hybrid", list_units, render)
