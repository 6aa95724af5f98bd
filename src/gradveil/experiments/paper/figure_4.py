"""P, Figure 4, and R, Figure 3: clean, rebuilt, transformed and rebuilt pictures of the four networks."""

from pathlib import Path

from safetensors.torch import load
from torch import Tensor

from gradveil.experiments.paper.drawing import Panel, draw_panels
from gradveil.experiments.paper.experiment import Experiment, Material, Rendering
from gradveil.experiments.paper.jobs import pictures_at
from gradveil.experiments.paper.policy_table import HYBRID, NONE, PUBLISHED_ATTACK
from gradveil.experiments.paper.published import PAIRS
from gradveil.experiments.paper.quirks import FAITHFUL
from gradveil.experiments.paper.scales import Scale
from gradveil.experiments.paper.table_1 import make_table
from gradveil.experiments.paper.units import AttackUnit, Unit
from gradveil.files import MAX_BYTES, read_regular

SHOWN = 3
FILE = "figure-4.png"
ROWS = ("clean", "rebuilt, no policy", "after the hybrid", "rebuilt, hybrid")


def first_attack(letter: str, label: str, scale: Scale) -> AttackUnit:
    """Return the first images of a cell, as the published comparison has them."""
    return make_table(letter, scale).attacks(label, PUBLISHED_ATTACK, FAITHFUL, scale)[0]


def list_units(scale: Scale) -> list[Unit]:
    return [first_attack(letter, label, scale) for letter in PAIRS for label in (NONE, HYBRID)]


def read_pictures(folder: Path | None, unit: AttackUnit) -> dict[str, Tensor] | None:
    """Read x, T(x) and what was rebuilt; None where they are not kept."""
    place = None if folder is None else pictures_at(folder, unit)
    if place is None or not place.exists():
        return None
    tensors: dict[str, Tensor] = load(read_regular(place, MAX_BYTES))
    return tensors


def make_panel(letter: str, material: Material) -> Panel | None:
    """Lay out the first images of one network; None if either attack was not run, or its pictures are elsewhere."""
    units = [first_attack(letter, label, material.scale) for label in (NONE, HYBRID)]
    plain, hybrid = (read_pictures(material.folder, unit) for unit in units)
    lines = [line for unit in units if (line := material.results.find(unit)) is not None]
    if plain is None or hybrid is None or len(lines) < len(units):
        return None
    scores = [[write_score(row["psnr_transformed"]) for row in line["rows"]] for line in lines]
    empty = [""] * SHOWN
    columns = [(plain["original"], empty), (plain["rebuilt"], scores[0]), (hybrid["fed"], empty)]
    columns.append((hybrid["rebuilt"], scores[1]))
    shown = {
        name: list(zip(pictures[:SHOWN], texts[:SHOWN], strict=False))
        for name, (pictures, texts) in zip(ROWS, columns, strict=True)
    }
    network = material.scale.networks[letter]
    return Panel(f"({letter}) {network.data}\n{network.model}", shown)


def write_score(value: float | None) -> str:
    return "failed" if value is None else f"{value:.2f} dB"


def render(material: Material) -> Rendering:
    panels = [panel for letter in PAIRS if (panel := make_panel(letter, material)) is not None]
    figures = {FILE: draw_panels(panels)} if panels else {}
    # The pages are also written where the journal is and the pictures, which are private, are not.
    drawn = bool(panels) or (material.folder is not None and (material.folder / FILE).exists())
    return Rendering(
        [
            "## Figure 4: what is rebuilt",
            "",
            f"Row by row: images, what `{PUBLISHED_ATTACK}` rebuilds of them without a policy, the images after crop, "
            "flip and the hybrid policy, and what is rebuilt of those; PSNR against what the model was fed. The first "
            "images of each cell of Table 1, not the best.",
            "",
            f"![Pictures]({FILE})" if drawn else "Not run.",
            "",
        ],
        figures,
    )


FIGURE = Experiment("figure-4", "Figure 4: what is rebuilt with and without the hybrid", list_units, render)
