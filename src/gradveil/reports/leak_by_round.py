"""Leak against round: what the server of a collaborative training rebuilt, image by image."""

import io
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gradveil.audit import Row
from gradveil.metrics import mean_interval

TARGETS = {"advantage_transformed": "what the model was fed, T(x)", "advantage_original": "the original x"}


def draw_leak_by_round(rows: Sequence[Row], title: str) -> bytes:
    """Draw the advantage of every image against its round, with the means, as a PNG."""
    figure = Figure(figsize=(10, 3.8), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (figure_name, label) in zip(figure.subplots(1, 2, sharey=True), TARGETS.items(), strict=True):
        draw_target(axes, rows, figure_name)
        axes.set_title(label, fontsize=9)
    figure.suptitle(title, fontsize=10, parse_math=False)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def draw_target(axes: Axes, rows: Sequence[Row], name: str) -> None:
    """Draw one dot for each image, and a bar for each round's mean and interval."""
    by_round: dict[int, list[float]] = {}
    for row in rows:
        value = getattr(row, name)
        if value is not None:
            by_round.setdefault(int(row.phase.removeprefix("round-")), []).append(value)
    for number, values in sorted(by_round.items()):
        axes.plot([number] * len(values), values, "o", color="C0", alpha=0.35, markersize=4)
        interval = mean_interval(values)
        half = 0.0 if interval.low is None else interval.mean - interval.low
        axes.errorbar(number, interval.mean, yerr=half, fmt="_", color="C3", markersize=14, linewidth=2)
        axes.annotate(f"n={len(values)}", (number, interval.mean), (8, 0), textcoords="offset points", fontsize=7)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("advantage over chance, dB")
    axes.grid(alpha=0.3)
