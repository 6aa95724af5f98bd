"""Which pictures stand on the page."""

import pytest
import torch

from gradveil.reports import audit_gallery
from gradveil.reports.audit_gallery import ROWS, SHOWN_FRAMES, make_gallery, spread, thin_frames
from gradveil.reports.audit_pictures import Frames, Pictures
from gradveil.reports.audit_record import leak_of, make_cells
from tests.reports.audit_records import make_pictures, make_record


def test_the_worst_of_every_cell_comes_first() -> None:
    record = make_record()
    gallery = make_gallery(make_cells(record), make_pictures(record))
    assert gallery.rows == gallery.total == 48
    for cell in make_cells(record):
        shown = gallery.by_cell[cell.number]
        leaks = [leak for leak in map(leak_of, cell.rows) if leak is not None]
        assert shown[0].leak == max(leaks)
        assert len(shown) == len(cell.rows)
    assert [one.leak for one in gallery.large] == sorted((one.leak for one in gallery.large), reverse=True)  # type: ignore[type-var]
    assert len({one.cell.number for one in gallery.large}) == len(gallery.large) == 6


def test_a_failed_row_has_no_rebuilt_picture() -> None:
    record = make_record()
    gallery = make_gallery(make_cells(record), make_pictures(record))
    last = gallery.by_cell[0][-1]
    assert (last.row["status"], last.rebuilt, last.leak) == ("failed", None, None)
    assert all(one.rebuilt for one in gallery.by_cell[0][:-1])


def test_of_many_rows_only_some_are_embedded_from_every_cell() -> None:
    record = make_record(images=300)
    gallery = make_gallery(make_cells(record), make_pictures(record))
    assert (gallery.rows, gallery.total) == (ROWS, 2400)
    assert {len(group) for group in gallery.by_cell.values()} <= {7, 8}
    cell = make_cells(record)[4]
    leaks = sorted(leak for leak in map(leak_of, cell.rows) if leak is not None)
    assert {leaks[0], leaks[-1], leaks[150]} <= {one.leak for one in gallery.by_cell[4]} | {leaks[149]}


def test_large_pictures_stop_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_gallery, "CHARACTERS", 1)
    record = make_record()
    assert make_gallery(make_cells(record), make_pictures(record)).rows == audit_gallery.LARGE


def test_the_spread_has_every_row_once() -> None:
    cell = make_cells(make_record(images=17))[3]
    assert sorted(spread(cell)) == list(cell.places)


def test_the_guess_of_the_original_is_shown_where_there_is_one() -> None:
    record = make_record()
    plain = make_pictures(record)
    guess = torch.zeros_like(plain.rebuilt)
    guess[1] = 0.5
    pictures = Pictures(plain.original, plain.transformed, plain.rebuilt, guess)
    shown = {one.place: one for group in make_gallery(make_cells(record), pictures).by_cell.values() for one in group}
    assert [place for place, one in shown.items() if one.guess] == [1]


def test_films_keep_their_first_and_last_frame() -> None:
    frames = Frames(tuple(range(100)), torch.zeros(100, 1, 2, 2))
    short = thin_frames(frames)
    assert (len(short.steps), short.steps[0], short.steps[-1]) == (SHOWN_FRAMES, 0, 99)
    record = make_record()
    films = make_gallery(make_cells(record), make_pictures(record, frames=(0, 7))).films
    assert [film.shown.place for film in films] == [0, 7]
    assert all(len(film.steps) == len(film.addresses) == 5 for film in films)
