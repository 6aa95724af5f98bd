"""The pictures that the attacks rebuilt: kept cell by cell, and drawn side by side."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from gradveil.audit import Attacked
from gradveil.experiments.attack_cells import Cell
from gradveil.reports import draw_grid, to_png
from gradveil.results import write_file

SHOWN = 4
Row = tuple[str, list[Tensor | None]]


def keep_pictures(folder: Path, cell: Cell, attacked: Sequence[Attacked]) -> None:
    """Write down what was fed and what was rebuilt of a cell's images; a failed attack has rebuilt nothing."""
    pictures = {
        "original": torch.cat([one.truth.original for one in attacked]),
        "fed": torch.cat([one.truth.transformed for one in attacked]),
        "rebuilt": torch.cat([one.reconstruction.images for one in attacked]).nan_to_num(0),
        "ok": torch.tensor([one.reconstruction.status == "ok" for one in attacked]),
    }
    place = kept_at(folder, cell)
    place.parent.mkdir(exist_ok=True)
    write_file(place, save({name: tensor.contiguous() for name, tensor in pictures.items()}))


def kept_at(folder: Path, cell: Cell) -> Path:
    budget = "own" if cell.evaluations is None else str(cell.evaluations)
    return (
        folder / "pictures" / (file_name((*cell.place, cell.attack, budget, f"{cell.images[0]:03d}")) + ".safetensors")
    )


def file_name(words: Sequence[str]) -> str:
    return "_".join(words).replace(":", "-").replace(",", "-")


def draw_sheets(folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[str, bytes]]:
    """Draw one sheet for each thing attacked, its first images side by side, a row for each attack: name and PNG."""
    rows: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for cell in cells:
        place = kept_at(folder, cell)
        if cell.images[0] == 0 and place.exists():
            sheet = rows[cell.place]
            kept = load(place.read_bytes())
            if not sheet:
                sheet.append(("original", list(kept["original"][:SHOWN])))
            if len(sheet) == 1 and not kept["fed"].equal(kept["original"]):
                sheet.append(("fed", list(kept["fed"][:SHOWN])))
            rebuilt = zip(kept["rebuilt"][:SHOWN], kept["ok"][:SHOWN], strict=True)
            sheet.append((cell.attack, [picture if ok else None for picture, ok in rebuilt]))
    for words, sheet in rows.items():
        yield file_name(words) + ".png", to_png(draw_grid(sheet, scale=2))


def render_pictures(folder: Path) -> str:
    """Show every picture of the folder, under its name."""
    text = ["## Pictures", ""]
    for picture in sorted(folder.glob("*.png")):
        text += [f"### {picture.stem}", "", f"![{picture.stem}]({picture.name})", ""]
    return "\n".join(text)
