"""Figures of an attack: its pictures over the steps, its loss, and the similarity of gradients layer by layer."""

import io
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from gradveil.reports.pictures import draw_grid, to_png
from gradveil.types import Reconstruction

SHOWN_LAYERS = 4


def draw_strip(truths: Sequence[tuple[Tensor, Tensor]], results: Sequence[Reconstruction]) -> bytes:
    """Draw one row for each image: x, T(x), and what the attack had at growing numbers of steps, as a PNG.

    `truths` has x and T(x) as float C×H×W.
    """
    rows: list[tuple[str, list[Tensor | None]]] = []
    for place, ((original, fed), result) in enumerate(zip(truths, results, strict=True)):
        last = [result.images[0] if result.status == "ok" else None]
        stages: list[Tensor | None] = [picture[0] for _, picture in result.pictures]
        rows.append((f"{place}: x, T(x), steps", [original, fed, *stages, *last]))
    return to_png(draw_grid(rows))


def draw_losses(results: Mapping[str, Reconstruction], title: str) -> bytes:
    """Draw the matching loss of every image over the steps, as a PNG."""
    figure, axes = make_figure(title)
    for name, result in results.items():
        if len(result.history) > 1:
            steps, losses = zip(*result.history, strict=True)
            axes.plot(steps, losses, label=name)
    if axes.lines:
        axes.legend(frameon=False, fontsize=7)
    if all(loss > 0 for result in results.values() for _, loss in result.history):
        axes.set_yscale("log")
    axes.set_ylabel("matching loss")
    return render(figure)


def draw_paths(paths: Mapping[str, Sequence[tuple[float, float]]], title: str) -> bytes:
    """Draw the PSNR of several attacks over the seconds that they took, as a PNG."""
    figure, axes = make_figure(title)
    for name, path in paths.items():
        axes.plot(*zip(*path, strict=True), marker=".", label=name)
    axes.legend(frameon=False, fontsize=7)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlabel("core-seconds an image")
    axes.set_ylabel("mean PSNR of T(x), dB")
    return render(figure)


def draw_similarities(result: Reconstruction, title: str) -> bytes:
    """Draw the cosine between gradients for the two shallowest and the two deepest weights, as a PNG."""
    figure, axes = make_figure(title)
    for name in chosen_layers(result):
        axes.plot(
            [step for step, _ in result.similarities], [alike[name] for _, alike in result.similarities], label=name
        )
    if axes.lines:
        axes.legend(frameon=False, fontsize=7)
    axes.set_ylabel("similarity of gradients")
    axes.set_ylim(-1.05, 1.05)
    return render(figure)


def chosen_layers(result: Reconstruction) -> list[str]:
    """Take the first two and the last two weights, without biases where there are enough others."""
    names = list(result.similarities[0][1]) if result.similarities else []
    weights = [name for name in names if name.endswith("weight")] or names
    half = SHOWN_LAYERS // 2
    return weights if len(weights) <= SHOWN_LAYERS else [*weights[:half], *weights[-half:]]


def make_figure(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6, 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def render(figure: Figure) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()
