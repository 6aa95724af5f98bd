"""How the growth of memory is found."""

import pytest

from tests.faults.load import find_growth, thin_out


def test_growth_is_that_of_the_later_work() -> None:
    """The first tenth loads libraries; after it every piece of 8 images adds half a megabyte."""
    points = [(0, 10.0), (1, 300.0), *((done, 400 + done / 2) for done in range(10, 101))]
    assert find_growth(points, 800) == pytest.approx(64)
    assert find_growth([(0, 10.0), (0, 20.0)], 800) == 0


def test_points_are_thinned_out_evenly() -> None:
    points = [(number, float(number)) for number in range(200)]
    kept = thin_out(points)
    assert len(kept) == 20
    assert (kept[0], kept[-1]) == ([0, 0.0], [199, 199.0])
