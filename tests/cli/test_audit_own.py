"""A person's own model with dropout and batch normalisation, and a folder of photos."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import gradveil
from gradveil import data
from gradveil.rng import generator

CODE = "from gradveil.cli import main; main()"
MODEL = """
from torch import Tensor, nn


class Own(nn.Module):
    def __init__(self, shape, classes, mean, std):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(shape[0], 8, 5, stride=2, padding=2), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 5, stride=2, padding=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2),
        )
        self.head = nn.Linear(8 * (shape[1] // 4) * (shape[2] // 4), classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images).flatten(1))
"""


class Own(nn.Module):
    """The same model in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8 * 15 * 15, 4)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images).flatten(1))
        return logits


def write_photos(folder: Path, each: int) -> None:
    """Write coloured pictures of 64×64 in four classes: a bright disc on a slope, another quarter for each class."""
    source = generator(9, "photos")
    down, across = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    for label in range(4):
        place = folder / f"quarter-{label}"
        place.mkdir(parents=True)
        for number in range(each):
            top, left, size = (torch.rand(3, generator=source) * 12).tolist()
            middle = (16 + 32 * (label // 2) + top / 2, 16 + 32 * (label % 2) + left / 2)
            disc = ((down - middle[0]) ** 2 + (across - middle[1]) ** 2 < (6 + size) ** 2).float()
            colours = torch.rand(2, 3, 1, 1, generator=source)
            picture = (
                colours[0] * (across / 90) + colours[1] * disc * 0.5 + 0.1 * torch.rand(3, 64, 64, generator=source)
            )
            pixels = (picture.clamp(0, 1) * 255).to(torch.uint8).permute(1, 2, 0).numpy()
            Image.fromarray(pixels).save(place / f"{number}.png")


@pytest.mark.slow
@pytest.mark.parametrize("each", [40, 15], ids=["160 photos", "60 photos"])
def test_by_the_command_line(each: int, tmp_path: Path) -> None:
    write_photos(tmp_path / "photos", each)
    (tmp_path / "own_model.py").write_text(MODEL)
    words = "--model own_model:Own --data folder:photos --defence crop-flip --images 4 --steps 20 --epochs 1 --canary 1"
    done = subprocess.run(
        [sys.executable, "-c", CODE, "audit", *words.split(), "--workers", "1", "--out", "result", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert [(one["arm"], one["phase"]) for one in record["summaries"]] == [
        (arm, phase) for phase in ("init", "final") for arm in ("none", "crop-flip")
    ]
    assert {row["status"] for row in record["rows"]} == {"ok"}
    assert all(row["candidates"] is not None for row in record["rows"])
    assert len(record["canaries"]) == 4
    assert (tmp_path / "result" / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_by_python(tmp_path: Path) -> None:
    write_photos(tmp_path / "photos", 15)
    photos = data.load(f"folder:{tmp_path / 'photos'}").train
    loader = DataLoader(TensorDataset(photos.images.float() / 255, photos.labels), batch_size=8)
    report = gradveil.audit(Own(), loader, loss=nn.CrossEntropyLoss(), arms=["crop-flip"], images=4)
    report.save(tmp_path / "report.html")
    assert {row.status for row in report.rows} == {"ok"}
    assert (tmp_path / "report.html").stat().st_size > 10_000
