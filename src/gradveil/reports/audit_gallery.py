"""Which pictures of an audit stand on its page, and how they get there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gradveil.reports.audit_pictures import Frames, Pictures
from gradveil.reports.audit_record import Cell, Record, leak_of
from gradveil.reports.pictures import data_address

Visible = Literal["all", "rebuilt", "none"]
"""Which pictures are shown: all, rebuilt ones without the originals and what the model was fed, or none."""
ROWS = 60
"""The most rows whose pictures a page holds: a page with all of thousands would not open."""
CHARACTERS = 12_000_000
"""The most that these pictures may add to the page; large images stop before `ROWS`."""
LARGE = 6
FRAMED = 6
SHOWN_FRAMES = 30


@dataclass(frozen=True)
class Shown:
    """The pictures of one row as data addresses; `rebuilt` is None where the attack has no result.

    `original` and `fed` are None where originals are left out.
    """

    place: int
    cell: Cell
    row: Record
    leak: float | None
    original: str | None
    fed: str | None
    rebuilt: str | None
    guess: str | None

    @property
    def size(self) -> int:
        return sum(len(address or "") for address in (self.original, self.fed, self.rebuilt, self.guess))


@dataclass(frozen=True)
class Film:
    """One row's way through the attack: step numbers, and a data address for each."""

    shown: Shown
    steps: Sequence[int]
    addresses: Sequence[str]


@dataclass(frozen=True)
class Gallery:
    """The pictures of a page: the worst ones large, all by their cell's number, and films; `rows` of `total`."""

    large: Sequence[Shown]
    by_cell: dict[int, list[Shown]]
    films: Sequence[Film]
    rows: int
    total: int
    shape: tuple[int, int]


def make_gallery(cells: Sequence[Cell], pictures: Pictures, originals: bool = True) -> Gallery:
    """Choose rows, the worst of every cell first, and embed their pictures, with or without originals."""
    shown: dict[int, Shown] = {}
    size = 0
    for place, cell in choose_rows(cells):
        if len(shown) == ROWS or (size > CHARACTERS and len(shown) >= LARGE):
            break
        shown[place] = show(place, cell, pictures, originals)
        size += shown[place].size
    by_cell: dict[int, list[Shown]] = {}
    for one in sorted(shown.values(), key=lambda one: (one.cell.number, -rank(one.leak))):
        by_cell.setdefault(one.cell.number, []).append(one)
    worst = sorted(
        (group[0] for group in by_cell.values() if group[0].leak is not None), key=lambda one: -rank(one.leak)
    )
    height, width = pictures.original.shape[-2:]
    return Gallery(
        worst[:LARGE], by_cell, make_films(cells, pictures, originals), len(shown), len(pictures), (height, width)
    )


def rank(leak: float | None) -> float:
    return float("-inf") if leak is None else leak


def choose_rows(cells: Sequence[Cell]) -> Iterator[tuple[int, Cell]]:
    """Yield rows of the cells in turn: the worst of each, then the least, the middle, and so on between them."""
    queues = [iter(spread(cell)) for cell in cells]
    waiting = list(zip(queues, cells, strict=True))
    while waiting:
        for queue, cell in list(waiting):
            place = next(queue, None)
            if place is None:
                waiting.remove((queue, cell))
            else:
                yield place, cell


def spread(cell: Cell) -> Iterator[int]:
    """Yield the places of a cell's rows: the worst, the least, then ever finer between; rows without a result last."""
    ranked = sorted(cell.places, key=lambda place: -rank(leak_of(cell.rows[place - cell.start])))
    seen: set[int] = set()
    parts = 1
    while len(seen) < len(ranked):
        for number in range(parts + 1):
            index = number * (len(ranked) - 1) // parts
            if index not in seen:
                seen.add(index)
                yield ranked[index]
        parts *= 2


def show(place: int, cell: Cell, pictures: Pictures, originals: bool) -> Shown:
    row = cell.rows[place - cell.start]
    sound = row["status"] == "ok"
    guess = pictures.rebuilt_original
    return Shown(
        place,
        cell,
        row,
        leak_of(row),
        data_address(pictures.original[place]) if originals else None,
        data_address(pictures.transformed[place]) if originals else None,
        data_address(pictures.rebuilt[place]) if sound else None,
        data_address(guess[place]) if sound and guess is not None and bool(guess[place].any()) else None,
    )


def make_films(cells: Sequence[Cell], pictures: Pictures, originals: bool) -> list[Film]:
    """Embed the ways of the rows that have them, the worst first."""
    owners = {place: cell for cell in cells for place in cell.places}
    order = sorted(pictures.frames, key=lambda place: -rank(leak_of(owners[place].rows[place - owners[place].start])))
    films: list[Film] = []
    size = 0
    for place in order[:FRAMED]:
        if size > CHARACTERS:
            break
        frames = thin_frames(pictures.frames[place])
        addresses = [data_address(image) for image in frames.images]
        films.append(Film(show(place, owners[place], pictures, originals), frames.steps, addresses))
        size += sum(map(len, addresses))
    return films


def thin_frames(frames: Frames) -> Frames:
    """Keep at most `SHOWN_FRAMES`, the first and the last among them."""
    count = len(frames.steps)
    if count <= SHOWN_FRAMES:
        return frames
    kept = [number * (count - 1) // (SHOWN_FRAMES - 1) for number in range(SHOWN_FRAMES)]
    return Frames(tuple(frames.steps[place] for place in kept), frames.images[kept])
