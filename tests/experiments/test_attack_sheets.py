"""The pictures of a cell: kept, and drawn side by side."""

import io
from pathlib import Path

import torch
from PIL import Image

from gradveil.audit import Attacked
from gradveil.experiments.attack_cells import GREY, Cell
from gradveil.experiments.attack_sheets import draw_sheets, keep_pictures, render_pictures
from gradveil.rounds import Truth
from gradveil.types import Reconstruction

CELLS = [Cell("part", GREY, "lenet", "init", "none", attack, (0, 1)) for attack in ("fast", "strong")]


def attacked(status: str = "ok") -> list[Attacked]:
    picture = torch.rand(1, 1, 8, 8)
    truth = Truth(0, 3, picture, picture, 3)
    result = Reconstruction(picture, torch.tensor([3]), 0.0, status)  # type: ignore[arg-type]
    return [Attacked(truth, result, 1.0, 1.0)] * 2


def test_a_sheet_has_a_row_for_the_original_and_for_each_attack(tmp_path: Path) -> None:
    keep_pictures(tmp_path, CELLS[0], attacked())
    ((name, one),) = draw_sheets(tmp_path, CELLS)
    keep_pictures(tmp_path, CELLS[1], attacked("failed"))
    ((_, two),) = draw_sheets(tmp_path, CELLS)
    assert name == "sample_lenet_init_none.png"
    heights = [Image.open(io.BytesIO(content)).height for content in (one, two)]
    assert heights[1] > heights[0]


def test_every_picture_of_the_folder_is_shown(tmp_path: Path) -> None:
    (tmp_path / "b.png").write_bytes(b"")
    (tmp_path / "a.png").write_bytes(b"")
    text = render_pictures(tmp_path)
    assert text.index("![a](a.png)") < text.index("![b](b.png)")
