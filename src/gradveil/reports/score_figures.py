"""Scores as pictures: similarity along the way from noise to image, and one bar for each transformation."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from gradveil.errors import SettingsError


@dataclass(frozen=True)
class Bar:
    """One entry: its label, its score, half its 95% interval if there is one, and whether it is marked."""

    label: str
    score: float
    half: float | None
    marked: bool


def draw_similarity(curves: Mapping[str, Tensor], points: Sequence[float], title: str) -> bytes:
    """Draw GradSim, images×points for each name, as mean ± standard deviation over the images; returns a PNG."""
    figure, axes = make_figure((6, 4), title)
    for place, (name, values) in enumerate(curves.items()):
        mean, colour = values.mean(0), f"C{place}"
        axes.plot(points, mean, color=colour, label=f"{name} (n = {len(values)})")
        if len(values) > 1:
            spread = values.std(0)
            axes.fill_between(points, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlim(0, 1)
    axes.set_xlabel("i: from noise (0) to the image that the gradient is of (1)")
    axes.set_ylabel("GradSim, mean ± std")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return render(figure)


def draw_bars(bars: Sequence[Bar], level: float, title: str) -> bytes:
    """Draw one bar for each entry, the marked ones in another colour, and a line at `level`; returns a PNG."""
    if not bars:
        raise SettingsError("there are no scores to draw: score at least one transformation")
    figure, axes = make_figure((11, 4.2), title)
    places = range(len(bars))
    axes.bar(
        places,
        [bar.score for bar in bars],
        yerr=[bar.half or 0.0 for bar in bars],
        color=["C3" if bar.marked else "C0" for bar in bars],
        error_kw={"elinewidth": 0.8, "ecolor": "0.3"},
    )
    axes.axhline(level, color="0.3", linewidth=0.8, linestyle="--", label="no transformation")
    axes.set_xticks(list(places), [bar.label for bar in bars], rotation=90, fontsize=6)
    axes.set_xlim(-0.8, len(bars) - 0.2)
    axes.set_ylabel("S_pri, mean and 95% interval")
    # Above the bars, which fill the axes from side to side.
    axes.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    return render(figure)


def make_figure(size: tuple[float, float], title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def render(figure: Figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()
