"""Accuracy against leak, with the choices that no other one beats in both."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Point:
    """One choice: the attacker's advantage in dB, less is better, and the accuracy, more is better."""

    name: str
    advantage: float
    accuracy: float


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Keep the points that no other is better than in one way and at least as good as in the other, by advantage.

    >>> [point.name for point in pareto_front([Point("a", 3, 0.9), Point("b", 1, 0.8), Point("c", 2, 0.7)])]
    ['b', 'a']
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.advantage, -point.accuracy)):
        if not front or point.accuracy > front[-1].accuracy:
            front.append(point)
    return front


def draw_pareto(panels: Mapping[str, Sequence[Point]], title: str) -> bytes:
    """Draw one panel for each phase; gives a PNG."""
    figure = Figure(figsize=(6.5 * len(panels), 5.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (phase, points) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        draw_panel(axes, points)
        axes.set_title(phase, fontsize=10)
    figure.suptitle(title, fontsize=10)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def draw_panel(axes: Axes, points: Sequence[Point]) -> None:
    """Draw the points, name them, and join those of the front."""
    front = pareto_front(points)
    axes.scatter([point.advantage for point in points], [100 * point.accuracy for point in points], s=18, color="C0")
    axes.plot([p.advantage for p in front], [100 * p.accuracy for p in front], ".-", color="C3", label="Pareto front")
    for point in points:
        place = (point.advantage, 100 * point.accuracy)
        weight = "bold" if point in front else "normal"
        axes.annotate(point.name, place, (4, 3), textcoords="offset points", fontsize=6, weight=weight)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("advantage over chance, dB (less is more private)")
    axes.set_ylabel("test accuracy, %")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
