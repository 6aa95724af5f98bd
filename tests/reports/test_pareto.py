"""Accuracy against leak: the front and the drawing."""

import io

from PIL import Image

from gradveil.reports.pareto import Point, draw_pareto, find_front, split_name

POINTS = [Point("none", 6.0, 0.9, 1.0), Point("clip:1", -2.0, 0.7), Point("clip:2", -1.0, 0.8), Point("sign", 5.0, 0.8)]


def test_below_chance_counts_as_chance() -> None:
    assert [point.name for point in find_front(POINTS)] == ["clip:2", "none"]


def test_panels_are_drawn_side_by_side() -> None:
    sizes = []
    for count in (2, 3):
        with Image.open(io.BytesIO(draw_pareto({str(panel): POINTS for panel in range(count)}, "title"))) as picture:
            sizes.append(picture.size)
    assert sizes[0][0] == sizes[1][0]
    assert sizes[1][1] > 1.5 * sizes[0][1]


def test_a_name_is_split_into_defence_and_strength() -> None:
    assert split_name("none") == ("none", "")
    assert split_name("policy:3-1-7") == ("policy", "3-1-7")
