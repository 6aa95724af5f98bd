"""Accuracy against leak, with the choices that no other one beats in both."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradveil.metrics import pareto_front

MARKERS = "os^D"
ACROSS = 2


@dataclass(frozen=True)
class Point:
    """One choice: the attacker's advantage in dB, less is better down to chance, and the accuracy, more is better.

    `interval` is half the width of the advantage's interval.
    """

    name: str
    advantage: float
    accuracy: float
    interval: float = 0.0

    @property
    def leak(self) -> float:
        """Count what is below chance as chance: that one attack does worse than that is no merit of a defence."""
        return max(self.advantage, 0.0)


def find_front(points: Sequence[Point]) -> list[Point]:
    """Keep the points that no other beats in one way and equals or beats in the other, by leak.

    >>> [point.name for point in find_front([Point("a", 3, 0.9), Point("b", 1, 0.8), Point("c", 2, 0.7)])]
    ['b', 'a']
    """
    return pareto_front(points, cost=lambda point: point.leak, value=lambda point: point.accuracy)


def draw_pareto(panels: Mapping[str, Sequence[Point]], title: str) -> bytes:
    """Draw a panel for each name, two side by side, each defence in its colour, its strengths joined; returns a PNG."""
    down = -(-len(panels) // ACROSS)
    figure = Figure(figsize=(6.5 * ACROSS + 1.5, 5 * down + 0.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    names = dict.fromkeys(split_name(point.name)[0] for points in panels.values() for point in points)
    looks = {name: (f"C{place % 10}", MARKERS[place // 10 % len(MARKERS)]) for place, name in enumerate(names)}
    places = [figure.add_subplot(down, ACROSS, place + 1) for place in range(len(panels))]
    for axes, (name, points) in zip(places, panels.items(), strict=True):
        draw_panel(axes, points, looks)
        axes.set_title(name, fontsize=10)
    lines = [line for axes in places for line in axes.get_lines()]
    handles = {str(line.get_label()): line for line in lines if str(line.get_label())[0] != "_"}
    figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def draw_panel(axes: Axes, points: Sequence[Point], looks: Mapping[str, tuple[str, str]]) -> None:
    """Draw the points with their strengths and intervals, join those of one defence, and mark the front."""
    front = find_front(points)
    for name, (colour, marker) in looks.items():
        own = [(point.advantage, 100 * point.accuracy) for point in points if split_name(point.name)[0] == name]
        if own:
            axes.plot(*zip(*own, strict=True), marker + "-", color=colour, label=name, linewidth=0.6, markersize=4.5)
    axes.plot(
        *zip(*((point.advantage, 100 * point.accuracy) for point in front), strict=True),
        "o--",
        color="black",
        label="Pareto front\n(below chance\ncounts as chance)",
        linewidth=1,
        markersize=9,
        markerfacecolor="none",
    )
    for point in points:
        name, strength = split_name(point.name)
        colour, _ = looks[name]
        weight = "bold" if point in front else "normal"
        place = (point.advantage, 100 * point.accuracy)
        axes.annotate(strength, place, (4, 3), textcoords="offset points", fontsize=6, weight=weight, color=colour)
        axes.errorbar(*place, xerr=point.interval, color=colour, linewidth=3, alpha=0.2)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("the attack's advantage over chance, dB")
    axes.set_ylabel("test accuracy, %")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def split_name(name: str) -> tuple[str, str]:
    """Split an arm into its defence and the strength.

    >>> split_name("dpsgd:noise=1.1:clip=1")
    ('dpsgd', 'noise=1.1:clip=1')
    """
    defence, _, strength = name.partition(":")
    return defence, strength
