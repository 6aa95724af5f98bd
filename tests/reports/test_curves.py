"""The curves of training as a picture."""

import io

import pytest
from matplotlib.figure import Figure
from PIL import Image

from gradveil.errors import SettingsError
from gradveil.reports import draw_curves
from gradveil.reports.curves import FEW, draw_accuracy, marker
from gradveil.training import Epoch

CURVES = tuple(Epoch(n, 2.0 / n, 0.1 * n, None if n % 2 else 0.1 * n + 0.05, 0.1, 3.0 * n) for n in range(1, 6))


def test_the_picture_is_a_png() -> None:
    two = draw_curves({"convnet-16": CURVES, "mlp": CURVES[:2]}, "two runs")
    picture = Image.open(io.BytesIO(two))
    assert picture.format == "PNG"
    assert picture.size == (1080, 432)
    assert two != draw_curves({"convnet-16": CURVES}, "two runs")


def test_a_run_that_was_never_tested_has_no_test_curve() -> None:
    axes = Figure().subplots()
    draw_accuracy(axes, "mlp", CURVES[:1], "C0")
    assert [line.get_label() for line in axes.lines] == ["mlp: training"]
    draw_accuracy(axes, "mlp", CURVES, "C1")
    assert [line.get_label() for line in axes.lines[1:]] == ["mlp: test 45.0%", "training"]
    assert axes.lines[1].get_xydata()[:, 0].tolist() == [2, 4]  # type: ignore[index, union-attr]


def test_a_run_without_epochs_is_refused() -> None:
    for runs in ({"none": ()}, {}):
        with pytest.raises(SettingsError, match="no epochs"):
            draw_curves(runs, "nothing")


def test_few_points_are_marked() -> None:
    assert marker(range(1)) == ".-"
    assert marker(range(FEW)) == "-"
