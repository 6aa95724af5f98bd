"""`gradveil inspect` on an honest and on a planted checkpoint."""

import json
import sys
from pathlib import Path

import pytest
import torch

from gradveil.cli import main
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import save_checkpoint
from tests.inspection.planted import plant_traps

SPEC = ModelSpec("mlp", (1, 28, 28), 10, (0.29,), (0.35,))


def write(path: Path, planted: bool) -> Path:
    model = SPEC.build(generator(0, "model"))
    if planted:
        plant_traps(model.body[1], SPEC, 0.9, torch.Generator().manual_seed(0))  # type: ignore[index, arg-type]
    save_checkpoint(path, {name: tensor.clone() for name, tensor in model.state_dict().items()}, SPEC, {})
    return path


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "inspect", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_an_honest_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "model.safetensors", planted=False)
    assert run(monkeypatch, str(path), "--fail") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Nothing odd found. This looks for patterns" in printed
    assert "Nothing odd found is no proof" in printed


def test_a_planted_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "model.safetensors", planted=True)
    assert run(monkeypatch, str(path)) == 0
    assert "body.1.weight: 100% of the rows have halves" in " ".join(capsys.readouterr().out.split())
    assert run(monkeypatch, str(path), "--fail", "--json") == 3
    record = json.loads(capsys.readouterr().out)
    assert record["odd"]
    assert record["settings"]["model"] == "mlp"
    assert [layer["name"] for layer in record["layers"] if layer["reasons"]] == ["body.1.weight"]
