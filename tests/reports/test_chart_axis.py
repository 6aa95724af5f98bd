"""Places on an axis."""

import pytest

from gradveil.reports.chart_axis import Axis


def test_an_interval_beyond_the_ends_is_cut_and_says_so() -> None:
    axis = Axis(0.0, 10.0)
    inside, wide = axis.span(2.0, 4.0), axis.span(-5.0, 25.0)
    assert inside is not None
    assert wide is not None
    assert (inside.low, inside.high, inside.cut_low, inside.cut_high, inside.width) == (20.0, 40.0, False, False, 20.0)
    assert (wide.low, wide.high, wide.cut_low, wide.cut_high) == (0.0, 100.0, True, True)
    assert axis.span(None, 1.0) is None


@pytest.mark.parametrize("values", [[], [3.0], [1.0, 1.0], [-50.0, 0.001], [float("nan"), 2.0]])
def test_every_value_has_a_place_and_ticks_are_round(values: list[float]) -> None:
    axis = Axis.around(values)
    assert axis.low < axis.high
    assert all(0 < axis.place(value) < 100 for value in values if value == value)
    ticks = axis.ticks()
    assert 3 <= len(ticks) <= 14
    assert all(axis.low <= value <= axis.high for value, _ in ticks)
