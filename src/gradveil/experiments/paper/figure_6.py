"""P, Figure 6, and R, Figure 5: similarity of gradients during the attack, in shallow and in deep layers."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from gradveil.experiments.markdown import write_table
from gradveil.experiments.paper.cells import Cell, Key
from gradveil.experiments.paper.drawing import draw_layers
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.policy_table import NONE, PUBLISHED_ATTACK, describe_network
from gradveil.experiments.paper.published import POLICIES, SHALLOW_SIMILARITY
from gradveil.experiments.paper.quirks import FAITHFUL
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.text import NOT_RUN
from gradveil.experiments.paper.units import Unit

SEARCHED = POLICIES["a"][0]
LABELS = (NONE, "random", SEARCHED)
STEPS = "steps"
FILE = "figure-6.png"
Rows = Mapping[Key, Mapping[str, Any]]


def list_units(scale: Scale) -> list[Unit]:
    table = make_table("a", scale)
    return [unit for label in LABELS for unit in table.attacks(label, PUBLISHED_ATTACK, FAITHFUL, scale)]


def rows_of(label: str, material: Material) -> Rows:
    """Return the rows that have a trace."""
    cell: Cell = make_table("a", material.scale).cell(label, PUBLISHED_ATTACK, FAITHFUL, material)
    return {key: row for key, row in cell.rows.items() if row["layers"]}


def layers_of(rows: Rows) -> list[str]:
    """List the layers of a trace, two shallow and two deep ones."""
    return next(([name for name in row["layers"] if name != STEPS] for row in rows.values()), [])


def mean_trace(rows: Rows, layer: str) -> tuple[list[float], list[float]]:
    """Average the similarity of a layer over images, step by step."""
    steps = next(iter(rows.values()))["layers"][STEPS]
    traces = [row["layers"][layer] for row in rows.values() if row["layers"][STEPS] == steps]
    return list(steps), [fmean(values) for values in zip(*traces, strict=True)]


def ends(rows: Rows, layers: Sequence[str]) -> dict[Key, float]:
    """Return where the similarity ends, image by image, averaged over some layers."""
    return {key: fmean(row["layers"][layer][-1] for layer in layers) for key, row in rows.items()}


def render(material: Material) -> Rendering:
    found = {label: rows for label in LABELS if (rows := rows_of(label, material))}
    layers = next((layers_of(rows) for rows in found.values()), [])
    figures = {}
    if layers:
        lines = {
            layer: {f"{label} (n = {len(rows)})": mean_trace(rows, layer) for label, rows in found.items()}
            for layer in layers
        }
        figures[FILE] = draw_layers(lines, "similarity between the rebuilt image's gradient and the released one")
    table = [
        [label, *(write_end(found.get(label), layer) for layer in layers), f"{len(found.get(label, {}))}"]
        for label in LABELS
    ]
    return Rendering(
        [
            "## Figure 6: similarity of gradients layer by layer",
            "",
            describe_network(material.scale.networks["a"], material.scale),
            "",
            f"The weights of the two shallowest and the two deepest layers, normalisation aside, at the end of "
            f"`{PUBLISHED_ATTACK}`, mean over images. P: "
            f"shallow layers converge to {SHALLOW_SIMILARITY} with no or a random policy, stay lower with a searched "
            "one; deep layers are the same for all.",
            "",
            *write_table(("policy", *layers, "n"), table),
            "",
            *(f"![Similarity]({name})" for name in figures),
            "",
        ],
        figures,
    )


def write_end(rows: Rows | None, layer: str) -> str:
    return NOT_RUN if rows is None else f"{fmean(ends(rows, [layer]).values()):.2f}"


FIGURE = Experiment("figure-6", "Figure 6: similarity of gradients layer by layer", list_units, render)
