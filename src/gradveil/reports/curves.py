"""The curves of training as a picture: loss on the left, accuracy on the right."""

import io
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gradveil.errors import SettingsError
from gradveil.training import Epoch

FEW = 20


def draw_curves(runs: Mapping[str, Sequence[Epoch]], title: str) -> bytes:
    """Draw the curves of one or several runs by name, as a PNG."""
    if not runs or not all(runs.values()):
        raise SettingsError("there are no epochs to draw: train for at least one")
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for index, (name, curves) in enumerate(runs.items()):
        draw_loss(left, name, curves, f"C{index}")
        draw_accuracy(right, name, curves, f"C{index}")
    finish(left, "training loss")
    finish(right, "accuracy, %")
    figure.legend(*right.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10, parse_math=False)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def draw_loss(axes: Axes, name: str, curves: Sequence[Epoch], colour: str) -> None:
    epochs = [point.epoch for point in curves]
    axes.plot(epochs, [point.train_loss for point in curves], marker(epochs), color=colour, label=name)


def draw_accuracy(axes: Axes, name: str, curves: Sequence[Epoch], colour: str) -> None:
    """Draw test accuracy solid, with the last value in the legend, and training accuracy dashed."""
    epochs = [point.epoch for point in curves]
    tested = [(point.epoch, 100 * point.test_accuracy) for point in curves if point.test_accuracy is not None]
    if tested:
        axes.plot(*zip(*tested, strict=True), marker(tested), color=colour, label=f"{name}: test {tested[-1][1]:.1f}%")
    label = "training" if tested else f"{name}: training"
    axes.plot(epochs, [100 * point.train_accuracy for point in curves], "--", color=colour, alpha=0.6, label=label)


def marker(points: Sequence[object]) -> str:
    """Choose the line style: few points get markers, because a line through one point shows nothing."""
    return ".-" if len(points) < FEW else "-"


def finish(axes: Axes, name: str, unit: str = "epoch") -> None:
    axes.set_xlabel(unit)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(name)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
