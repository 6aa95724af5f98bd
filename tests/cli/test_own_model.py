"""A person's own model, in the folder where they work, in every command that takes a model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gradveil.cli import main
from gradveil.training import load_checkpoint
from tests.models.test_own import OWN

MODEL = '''
import torch
from torch import Tensor, nn


class Own(nn.Module):
    """Flattens with view, as the original DLG LeNet does, and drops and normalises as people do."""

    def __init__(self, shape, classes, mean, std):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(shape[0], 4, 5, stride=3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(4 * 8 * 8, classes)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.body(images)
        return self.head(hidden.view(len(hidden), -1))
'''


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from gradveil.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "audit --phase init --phase final --defence none --images 2 --steps 2 --epochs 1 --workers 2",
        "audit --phase init --images 4 --images-per-client 2 --mode train --steps 2 --workers 1",
        "attack --images 1 --steps 2",
        "train --epochs 1 --fraction 0.05",
        "search --candidates 6 --keep 2 --images 4 --epochs 1 --workers 2",
    ],
    ids=["audit", "audit-batch", "attack", "train", "search"],
)
def test_it_is_found_and_used(tmp_path: Path, words: str) -> None:
    (tmp_path / "own_model.py").write_text(MODEL)
    done = run(tmp_path, *words.split(), "--model", "own_model:Own", "--out", "result", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["model"] == "own_model:Own"


@pytest.mark.parametrize("name", ["Frozen", "Unused", "Tied", "Counting", "LazyButCalled"])
def test_an_odd_model_is_trained_and_its_checkpoint_loads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_models.py").write_text(OWN.replace("3072", "784").replace("3, 32, 32", "1, 28, 28"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    words = f"train --model own_models:{name} --epochs 1 --fraction 0.01 --batch-size 16 --out result -q"
    monkeypatch.setattr(sys, "argv", ["gradveil", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    loaded = load_checkpoint(Path("result/final.safetensors"), f"own_models:{name}")
    state = loaded.build().state_dict()
    assert state.keys() == loaded.weights.keys()
    assert all(torch.equal(state[key], tensor) for key, tensor in loaded.weights.items())


@pytest.mark.slow
def test_it_is_scored(tmp_path: Path) -> None:
    (tmp_path / "own_model.py").write_text(MODEL)
    done = run(tmp_path, "score", "3-1-7", "--model", "own_model:Own", "--images", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["model"] == "own_model:Own"


@pytest.mark.slow
def test_a_network_with_small_strided_convolutions_does_not_crash(tmp_path: Path) -> None:
    """Channels-last memory ended this very command in "double free or corruption"."""
    words = "audit --model resnet18-w4 --participants 8 --images 8 --phase init --defence none --steps 3 --workers 1"
    done = run(tmp_path, *words.split(), "--out", "result", "-q")
    assert done.returncode == 0, done.stderr
