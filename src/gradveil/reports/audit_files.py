"""The folder of an audit: the record, the table, the page and the pictures, which belong together by their seals."""

import re
from pathlib import Path
from typing import Any

from gradveil.errors import DataError, OutputError
from gradveil.reports.audit_gallery import Visible, spread
from gradveil.reports.audit_page import render_audit
from gradveil.reports.audit_pictures import Pictures, hash_pictures, read_pictures, write_pictures
from gradveil.reports.audit_record import Cell, Record, check_record, leak_of, make_cells
from gradveil.reports.audit_table import write_csv
from gradveil.reports.pictures import draw_grid, to_png
from gradveil.reports.sealed_page import is_unchanged, seals_in
from gradveil.results import OPEN, PRIVATE, SEAL, read_sealed, seal, to_json, write_file

RECORD, TABLE, PAGE, PICTURES, GRIDS = "audit.json", "audit.csv", "report.html", "pictures.safetensors", "pictures"
PICTURES_HASH = "pictures_sha256"
GRID_COLUMNS = 24
"""The most pictures across one grid: of more images the worst, the least and an even spread between them."""


def write_audit(folder: Path, record: Record, pictures: Pictures, show: Visible = "all") -> dict[str, Any]:
    """Write all files of an audit and return the sealed record; `audit.json` comes last and marks the run as complete.

    The record gets the hash of the pictures before it is sealed. Files with pictures can be read by their owner only.
    If not `all` pictures are to be shown, the page alone has any, and no other file.
    """
    sealed = seal({**record, PICTURES_HASH: hash_pictures(pictures)})
    check_record(sealed)
    check_count(sealed, pictures, folder)
    if show == "all":
        write_pictures(folder / PICTURES, pictures, sealed[SEAL])
        write_grids(folder / GRIDS, sealed, pictures)
    write_file(folder / TABLE, write_csv(sealed))
    write_file(folder / PAGE, render_audit(sealed, pictures, show), OPEN if show == "none" else PRIVATE)
    write_file(folder / RECORD, to_json(sealed))
    return sealed


def read_audit(folder: Path) -> tuple[dict[str, Any], Pictures | None]:
    """Read a record, and its pictures if they are there; files that do not belong together are refused."""
    if not (folder / RECORD).exists():
        raise DataError(f"{folder} holds no {RECORD}: give the folder of a finished 'gradveil audit'")
    record = read_sealed(folder / RECORD)
    check_record(record, str(folder / RECORD))
    if not (folder / PICTURES).exists():
        return record, None
    pictures, owner = read_pictures(folder / PICTURES)
    if owner != record[SEAL]:
        raise DataError(f"{folder / PICTURES} belongs to another {RECORD}: copy the folder again, or remove that file")
    if record.get(PICTURES_HASH, hash_pictures(pictures)) != hash_pictures(pictures):
        raise DataError(f"{folder / PICTURES} was changed or damaged (its SHA-256 differs): copy it again")
    check_count(record, pictures, folder)
    return record, pictures


def check_count(record: Record, pictures: Pictures, folder: Path) -> None:
    if len(pictures) != len(record["rows"]):
        raise DataError(
            f"{folder}: {len(pictures)} pictures for {len(record['rows'])} rows: there must be one for each"
        )


def verify_audit(folder: Path) -> str:
    """Check that the files of a folder are unchanged and belong together; return one line that says so."""
    record, pictures = read_audit(folder)
    verify_page(folder / PAGE, record)
    if (folder / TABLE).exists() and (folder / TABLE).read_bytes() != write_csv(record).encode():
        raise DataError(f"{folder / TABLE} is not the table of {RECORD}: write it again with gradveil report {folder}")
    missing = [
        name for name, there in ((TABLE, (folder / TABLE).exists()), (PICTURES, pictures is not None)) if not there
    ]
    present = [name for name in (PAGE, TABLE, PICTURES) if name not in missing]
    absent = f"; {' and '.join(missing)} not there" if missing else ""
    return f"{folder} holds: {RECORD} is unchanged, {', '.join(present)} belong to it{absent}; SHA-256 {record[SEAL]}"


def verify_page(path: Path, record: Record) -> None:
    """Refuse a page that was changed, or that shows another record."""
    again = f"draw it again with gradveil report {path.parent}"
    try:
        page = path.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a page: {error}; {again}") from error
    if seals_in(page) != [record[SEAL]]:
        raise DataError(f"{path} does not show this {RECORD}: {again}")
    if not is_unchanged(page):
        raise DataError(f"{path} was changed after it was written: {again}")


def write_grids(folder: Path, record: Record, pictures: Pictures) -> None:
    """Draw one grid for each cell; grids of an earlier run are removed."""
    try:
        folder.mkdir(exist_ok=True)
        for stale in folder.glob("*.png"):
            stale.unlink()
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}; choose another place with --out") from error
    for cell in make_cells(record):
        if cell.rows:
            write_file(folder / name_grid(cell), draw_cell(cell, pictures), PRIVATE)


def name_grid(cell: Cell) -> str:
    """Name a grid by its cell; the number keeps names apart that differ only in signs that a file name cannot have."""
    words = re.sub(r"[^A-Za-z0-9+-]+", "_", f"{cell.phase} {cell.arm} {cell.attack}").strip("_")
    return f"{cell.number + 1:02d}_{words[:80]}.png"


def draw_cell(cell: Cell, pictures: Pictures) -> bytes:
    """Draw originals, what was fed and what was rebuilt, the image that leaks most first."""
    chosen = [place for _, place in zip(range(GRID_COLUMNS), spread(cell), strict=False)]
    leaks = {place: leak_of(cell.rows[place - cell.start]) for place in chosen}
    order = sorted(chosen, key=lambda place: float("inf") if leaks[place] is None else -(leaks[place] or 0.0))
    grid = [
        (name, [tensor[place] if name != "rebuilt" or leaks[place] is not None else None for place in order])
        for name, tensor in pictures.by_name().items()
    ]
    return to_png(draw_grid(grid))
