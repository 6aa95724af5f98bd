"""The charts show all images, and mark what they cut."""

from dataclasses import replace
from typing import Any

from gradveil.reports.audit_charts import DOTS, make_rate, make_scatter, make_strips
from gradveil.reports.audit_record import Cell, leak_of, make_cells
from tests.reports.audit_records import make_record


def first_cell(**changes: Any) -> Cell:
    cell = make_cells(make_record())[0]
    return replace(cell, summary={**cell.summary, **changes})


def test_every_image_with_a_result_is_a_dot() -> None:
    cells = make_cells(make_record())
    chart = make_strips(cells)
    for cell in cells:
        sound = [leak for leak in map(leak_of, cell.rows) if leak is not None]
        dots = chart.strips[cell.number].dots
        assert len(dots) == len(sound)
        assert [x for x, *_ in dots] == sorted(x for x, *_ in dots)
        assert all(0 < x < 100 for x, *_ in dots)
    assert len(chart.strips[0].dots) == 5  # the sixth attack failed
    assert {kind for _, _, kind, _ in chart.strips[0].dots} == {"hit"}
    assert {kind for _, _, kind, _ in chart.strips[2].dots} == {"plain"}
    assert chart.hidden == 0
    assert not chart.cut


def test_band_threshold_and_both_means_have_places() -> None:
    chart = make_strips(make_cells(make_record()))
    strip = chart.strips[0]
    assert strip.band is not None
    assert strip.median is not None
    assert strip.threshold is not None
    assert strip.band.low < strip.median < chart.zero < strip.band.high < strip.threshold
    assert [bar.target for bar in strip.bars] == ["transformed", "original"]


def test_a_huge_interval_is_cut_with_a_mark_and_a_modest_one_is_not() -> None:
    cell = first_cell()
    figure = cell.summary["figures"]["advantage_transformed"]
    wide = {**figure, "low": -400.0, "high": 400.0}
    chart = make_strips([first_cell(figures={"advantage_transformed": wide})])
    span = chart.strips[0].bars[0].span
    assert span is not None
    assert (span.cut_low, span.cut_high, span.low, span.high) == (True, True, 0.0, 100.0)
    assert chart.cut
    assert chart.strips[0].dots[-1][0] - chart.strips[0].dots[0][0] > 10, "images keep their room"


def test_a_cell_without_any_figure_is_an_empty_strip() -> None:
    chart = make_strips([replace(first_cell(figures={}, null=None, threshold=None), rows=[])])
    strip = chart.strips[0]
    assert (strip.dots, strip.band, strip.median, strip.threshold, strip.bars) == ([], None, None, None, [])


def test_of_many_images_an_even_spread_is_drawn_with_all_that_stand_out() -> None:
    record = make_record(images=1000, cells=(("none", "init", "some"),), failed=False)
    chart = make_strips(make_cells(record))
    drawn = len(chart.strips[0].dots)
    assert DOTS <= drawn < 2 * DOTS
    assert chart.hidden == 1000 - drawn
    hits = sum(row["hit"] for row in record["rows"])
    assert 0 < hits == sum(kind == "hit" for _, _, kind, _ in chart.strips[0].dots)


def test_a_rate_is_placed_beside_its_chance() -> None:
    assert make_rate(None) is None
    rate = make_rate({"found": 9, "images": 20, "candidates": 20, "low": 0.25, "high": 0.66})
    assert rate is not None
    assert (rate["rate"], rate["chance"], rate["span"].low, rate["span"].high) == (45.0, 5.0, 25.0, 66.0)


def test_the_scatter_has_a_point_for_each_cell_with_an_accuracy() -> None:
    cells = make_cells(make_record())
    scatter = make_scatter(cells)
    assert scatter is not None
    assert [point["number"] for point in scatter["points"]] == list(range(1, 9))
    best = max(scatter["points"], key=lambda point: point["cell"].summary["accuracy"])
    assert best["y"] == min(point["y"] for point in scatter["points"])
    assert make_scatter([first_cell(accuracy=None)]) is None
    twins = make_scatter([cells[0], cells[0]])
    assert twins is not None
    assert twins["points"][0]["shift"] != twins["points"][1]["shift"]
