"""The curves of a run: written, read, drawn."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from gradveil.errors import DataError, SettingsError
from gradveil.reports.curves import draw_curves
from gradveil.training import Epoch, read_curves
from gradveil.training.curves import log_to_tensorboard, write_curves

CURVES = tuple(Epoch(n, 2.0 / n, 0.1 * n, None if n % 2 else 0.1 * n + 0.05, 0.1, 3.0 * n) for n in range(1, 6))


def test_curves_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_curves(tmp_path, CURVES)
    assert read_curves(tmp_path) == CURVES
    assert (tmp_path / "curves.jsonl").read_text().count("\n") == 5


def test_a_value_that_json_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_curves(tmp_path, [replace(CURVES[0], train_loss=float("nan"))])


@pytest.mark.parametrize("text", ["{", '{"epoch": 1}', "3"])
def test_a_file_that_holds_no_curves(tmp_path: Path, text: str) -> None:
    (tmp_path / "curves.jsonl").write_text(text)
    with pytest.raises(DataError, match="holds no curves"):
        read_curves(tmp_path)


def test_the_picture_is_a_png() -> None:
    picture = Image.open(io.BytesIO(draw_curves({"convnet-16": CURVES, "mlp": CURVES[:1]}, "two runs")))
    assert picture.format == "PNG"
    assert picture.size == (1080, 432)
    with pytest.raises(SettingsError, match="no epochs"):
        draw_curves({"none": ()}, "nothing")


def test_tensorboard_gets_every_figure_but_those_that_are_missing() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.scalars: list[tuple[str, float, int]] = []
            self.flushed = 0

        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            self.scalars.append((tag, scalar_value, global_step))

        def flush(self) -> None:
            self.flushed += 1

    recorder = Recorder()
    for point in CURVES[:2]:
        log_to_tensorboard(recorder, point)
    assert [tag for tag, _, step in recorder.scalars if step == 1] == ["train/loss", "train/accuracy", "learning_rate"]
    assert ("test/accuracy", CURVES[1].test_accuracy, 2) in recorder.scalars
    assert recorder.flushed == 2
