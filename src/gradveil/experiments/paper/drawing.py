"""Figures in the form of the published ones, as PNG."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Panel:
    """Some pictures of one network: rows by name, each with pictures, C×H×W, and what is written below each."""

    title: str
    rows: Mapping[str, Sequence[tuple[Tensor, str]]]


def make_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[list[Axes]]]:
    """Make a figure with a grid of axes."""
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(line) for line in grid]


def to_png(figure: Figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="png", metadata={"Software": None})
    return target.getvalue()


def draw_scatter(panels: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, across: str) -> bytes:
    """Draw one cloud of points for each name: the first figure across, the second up."""
    figure, grid = make_figure(1, len(panels), (4.6 * len(panels), 3.8))
    for axes, (name, (first, second)) in zip(grid[0], panels.items(), strict=True):
        axes.scatter(first, second, s=14, color="C0", alpha=0.8)
        axes.set_xlabel(across)
        axes.set_ylabel(name, parse_math=False)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return to_png(figure)


def draw_panels(panels: Sequence[Panel]) -> bytes:
    """Draw the panels from left to right, each a grid of pictures; a row has the same meaning in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.rows))
    widths = [max(len(row) for row in panel.rows.values()) for panel in panels]
    # An empty column stands between two panels.
    columns = sum(widths) + len(panels) - 1
    figure, grid = make_figure(len(names), columns, (0.95 * columns + 1.2, 1.25 * len(names) + 0.3))
    for axes in (axes for line in grid for axes in line):
        fill_row([axes], ())
    left = 0
    for panel, width in zip(panels, widths, strict=True):
        for line, name in enumerate(names):
            fill_row([grid[line][left + place] for place in range(width)], panel.rows.get(name, ()))
        grid[0][left].set_title(panel.title, fontsize=8, loc="left", parse_math=False)
        left += width + 1
    for line, name in enumerate(names):
        grid[line][0].set_ylabel(name, fontsize=8, parse_math=False)
    return to_png(figure)


def fill_row(cells: Sequence[Axes], pictures: Sequence[tuple[Tensor, str]]) -> None:
    """Show one row of pictures; cells without one stay empty."""
    for place, axes in enumerate(cells):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        if place < len(pictures):
            pixels, below = pictures[place]
            shown = pixels.clamp(0, 1).permute(1, 2, 0).numpy()
            axes.imshow(shown[:, :, 0] if shown.shape[2] == 1 else shown, cmap="gray", vmin=0, vmax=1)
            axes.set_xlabel(below, fontsize=7, labelpad=1)


def draw_layers(panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]], title: str) -> bytes:
    """Draw lines over the steps of an attack, a panel for each layer: steps and similarities by name."""
    columns = 2
    figure, grid = make_figure(-(-len(panels) // columns), columns, (9, 3.2 * -(-len(panels) // columns)))
    every = [axes for line in grid for axes in line]
    for axes, (layer, lines) in zip(every, panels.items(), strict=False):
        for name, (steps, values) in lines.items():
            axes.plot(steps, values, marker=".", label=name)
        axes.set_title(layer, fontsize=9, parse_math=False)
        axes.set_xlabel("step of the attack")
        axes.set_ylabel("similarity of gradients")
        axes.set_ylim(-0.25, 1.05)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=7)
    figure.suptitle(title, fontsize=10, parse_math=False)
    return to_png(figure)
