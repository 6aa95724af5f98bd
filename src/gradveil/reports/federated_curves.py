"""The rounds of a collaborative training as a picture: loss on the left, test accuracy on the right."""

import io
from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradveil.errors import SettingsError
from gradveil.federated import RoundOutcome
from gradveil.reports.curves import finish, marker


def draw_rounds(rounds: Sequence[RoundOutcome], title: str) -> bytes:
    """Draw the loss that clients report and the accuracy of the tested rounds, as a PNG."""
    if not rounds:
        raise SettingsError("there are no rounds to draw: train for at least one")
    figure = Figure(figsize=(9, 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    losses = [(outcome.round, outcome.loss) for outcome in rounds if outcome.loss is not None]
    tested = [(one.round, 100 * one.test_accuracy) for one in rounds if one.test_accuracy is not None]
    left.plot(*zip(*losses, strict=True), marker(losses), color="C0")
    right.plot(*zip(*tested, strict=True), marker(tested), color="C0")
    finish(left, "mean loss of the clients", "round")
    finish(right, "test accuracy, %", "round")
    figure.suptitle(title, fontsize=10, parse_math=False)
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()
