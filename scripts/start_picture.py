"""Draw the picture of the start page from a finished audit: `python -m scripts.start_picture runs/audit`.

It shows the first image that was attacked, after training. The PNG holds its figures as text; a test compares them with
the kept audit.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from gradveil.reports import Pictures, read_audit
from scripts.readme_table import read_audit as read_kept

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "audit.png"
PHASE = "final"
KEY = "Figures"
ROWS = {"original": "original x", "transformed": "fed, T(x)", "rebuilt": "rebuilt"}
Row = Mapping[str, Any]


def choose_rows(record: Mapping[str, Any]) -> dict[int, Row]:
    """Take the first attacked image under every arm, with the place of its row."""
    rows = {place: row for place, row in enumerate(record["rows"]) if row["phase"] == PHASE}
    first = next(iter(rows.values()))["image"]
    return {place: row for place, row in rows.items() if row["image"] == first}


def describe(row: Row) -> dict[str, Any]:
    """Return what the picture says of a row."""
    gains = {name: round(row[f"advantage_{name}"], 1) for name in ("transformed", "original")}
    return {"arm": row["arm"], "image": row["image"], **gains, "picked_out": row["identified_original"]}


def write_caption(told: Mapping[str, Any]) -> str:
    picked = "picked out of 20" if told["picked_out"] else "not picked out of 20"
    return f"{told['transformed']:+.1f} dB at T(x), {told['original']:+.1f} dB at x\nx {picked}"


def draw(rows: Mapping[int, Row], pictures: Pictures) -> Figure:
    """Draw a column for each arm: the original, what the model was fed, what the attacker rebuilt."""
    figure = Figure(figsize=(2.6 * len(rows), 7.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(ROWS), len(rows), squeeze=False)
    named = pictures.by_name()
    for column, (place, row) in enumerate(rows.items()):
        for line, name in enumerate(ROWS):
            show(axes[line][column], named[name][place].permute(1, 2, 0).clamp(0, 1).numpy())
        axes[0][column].set_title(row["arm"], fontsize=10, fontweight="bold")
        axes[-1][column].set_xlabel(write_caption(describe(row)), fontsize=9)
    for line, label in enumerate(ROWS.values()):
        axes[line][0].set_ylabel(label, fontsize=11)
    return figure


def show(axes: Axes, pixels: Any) -> None:
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])


def read_figures(path: Path = PICTURE) -> list[dict[str, Any]]:
    """Read the figures that a picture holds as text."""
    with Image.open(path) as picture:
        found: list[dict[str, Any]] = json.loads(picture.info[KEY])
    return found


def kept_figures() -> list[dict[str, Any]]:
    """Return the same figures of the audit that is kept with the documentation."""
    return [describe(row) for row in choose_rows(read_kept(0)).values()]


def main() -> None:
    """Draw the picture of an audit that found what the kept one found."""
    record, pictures = read_audit(Path(sys.argv[1]))
    if pictures is None:
        raise SystemExit(f"{sys.argv[1]} holds no pictures")
    rows = choose_rows(record)
    figures = [describe(row) for row in rows.values()]
    if figures != kept_figures():
        raise SystemExit(f"{sys.argv[1]} found {figures}, the kept audit {kept_figures()}: they must agree")
    draw(rows, pictures).savefig(PICTURE, metadata={KEY: json.dumps(figures)})


if __name__ == "__main__":
    main()
