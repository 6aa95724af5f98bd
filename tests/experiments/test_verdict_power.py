"""Audits that are drawn from a pool are audits of just these images."""

from dataclasses import replace

import pytest

from gradveil.audit import Cell, Rule, judge
from gradveil.experiments.verdict_power import COUNTS, DRAWS, draw_audits, take
from tests.audit.test_summary import make_row

NULL = [value / 100 - 1 for value in range(199)]


def make_pool(leaking: int, images: int = 40) -> Cell:
    """Make a cell in which some images gain 8 dB, and the null of each image is shifted by its number."""
    advantages = [8.0 if image < leaking else -2.0 for image in range(images)]
    rows = tuple(make_row(image, gain, candidates=200, p_value=None) for image, gain in enumerate(advantages))
    return Cell("none", "init", "fast", rows, tuple(value + image / 1e6 for image in range(images) for value in NULL))


def test_an_image_keeps_its_own_null() -> None:
    part = take(make_pool(3), [5, 2])
    assert [row.image for row in part.rows] == [5, 2]
    assert part.null[:199] == pytest.approx([value + 5e-6 for value in NULL], abs=1e-9)
    assert part.null[199:] == pytest.approx([value + 2e-6 for value in NULL], abs=1e-9)


def test_what_was_found_in_the_pool_does_not_carry_over() -> None:
    cell = make_pool(3)
    marked = replace(cell, rows=tuple(replace(row, hit=True, confirmed=True) for row in cell.rows))
    assert not any(row.hit or row.confirmed for row in take(marked, [0, 1]).rows)


def test_draws_find_what_is_there_and_nothing_else() -> None:
    for leaking, expected in ((40, {"leaks"}), (0, {"undecided"})):
        draws = list(draw_audits([make_pool(leaking)], Rule(), "diagnostic", 0))
        assert [draw["images"] for draw in draws] == [count for count in COUNTS for _ in range(DRAWS)]
        assert {draw["outcomes"][0] for draw in draws} == expected


def test_a_single_leak_is_found_where_it_was_drawn() -> None:
    cell = make_pool(1)
    assert judge([take(cell, range(8))], Rule(), "diagnostic").summaries[0].outcome == "some"
    assert judge([take(cell, range(1, 9))], Rule(), "diagnostic").summaries[0].outcome == "undecided"
