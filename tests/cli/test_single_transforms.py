"""`gradveil reproduce single-transforms` as a person uses it."""

import contextlib
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from gradveil import data
from gradveil.cli import main
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import save_checkpoint


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    path = tmp_path / "half.safetensors"
    save_checkpoint(path, spec.build(generator(0, "model")).state_dict(), spec, {})
    return path


def test_the_command_writes_table_picture_and_record(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--checkpoint", str(weights), "--images", "2", "--quadrature", "gauss-1", "--out", str(tmp_path / "s")]
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", "single-transforms", *words])
    with contextlib.suppress(SystemExit):
        main()
    assert "Best five: " in capsys.readouterr().out
    record = json.loads((tmp_path / "s" / "single_transforms.json").read_text())
    assert record["settings"]["model"] == "lenet-relu"
    assert len(record["lines"]) == 27
    assert all(len(values) == 2 for values in record["scores"].values())
    assert "Published: 3, 15, 18, 26, 1" in (tmp_path / "s" / "single_transforms.md").read_text()
    with Image.open(tmp_path / "s" / "single_transforms.png") as picture:
        assert picture.width > picture.height > 200
