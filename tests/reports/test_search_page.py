"""The page of a search, from its first moment to the last."""

import re
from xml.etree import ElementTree

from gradveil.reports.search_page import make_chart, render_search_page
from gradveil.search import Records, SearchSettings, Standing, make_status

SETTINGS = SearchSettings(images=2, keep=2, candidates=5, training=None, weights="given")


def make_records() -> Records:
    records = Records()
    records.take({"study": SETTINGS.to_record()})
    return records


def test_a_search_that_has_just_begun() -> None:
    page = render_search_page(make_status(make_records()))
    assert "no score yet" in page
    assert "Nothing is scored yet" in page
    assert 'http-equiv="refresh"' in page


def test_a_search_under_way_and_at_its_end() -> None:
    records = make_records()
    scores = {"3-1-7": [0.2, 0.4], "18": [0.5, 0.7], "7": [0.9, 0.9], "5": [None, 0.1], "none": [0.1, 0.1]}
    records.take({"privacy": "lobatto-3", "places": [0, 1], "scores": scores, "seconds": 1.0})
    records.take({"accuracy": {"3-1-7": [-1.5], "18": [-1.2], "7": [-1.4], "none": [-1.1]}, "seconds": 0.5})
    records.take({"event": "round", "number": 1, "of": 2, "images": 2, "rule": "lobatto-3", "alive": 3, "leaders": []})
    status = make_status(records)
    assert [one.policy for one in status.leaders] == ["3-1-7", "18"]
    assert (status.jobs, status.seconds, status.with_accuracy) == (2, 1.5, 3)
    page = render_search_page(status)
    assert "translateX:9 &gt; contrast:6 &gt; translateY:2" in page
    assert "round 1 of 2 done" in page
    chart = re.search(r"<svg.*?</svg>", page, re.DOTALL)
    assert chart is not None
    drawn = ElementTree.fromstring(chart[0])
    assert len(drawn.findall("circle")) == 3
    line = drawn.find("polyline")
    assert line is not None
    assert (
        len(line.attrib["points"].split()) == 2
    )  # 7 is beaten in both scores, and no policy at all is not in the race
    plan = {"attack": "standard", "images": 4}
    measured = {"finding": "leaks", "test_accuracy": 0.5}
    records.take({"validation": plan, "policy": "18", "advantage": [1.5, 1.0, 2.0, 0.3, 4], **measured})
    records.take({"validation": plan, "policy": "none", "advantage": None, **measured})
    records.take({"event": "done", "drawn": 5})
    done = render_search_page(make_status(records))
    assert "+1.5 ± 0.5" in done
    assert 'http-equiv="refresh"' not in done


def test_policies_that_cost_everything_do_not_squeeze_the_chart() -> None:
    standings = [Standing(str(number), number / 40, 2, False, -1.0 - number / 100) for number in range(40)]
    chart = make_chart([*standings, Standing("40", 0.5, 2, False, -11_002.0)], standings[:2])
    assert chart is not None
    assert chart["hidden"] > 0
    heights = [dot["y"] for dot in chart["dots"]]
    assert max(heights) - min(heights) > 200
    assert all(0 <= dot["x"] <= chart["width"] and 0 <= dot["y"] <= chart["height"] for dot in chart["dots"])


def test_one_point_has_a_chart() -> None:
    only = Standing("3", 0.5, 2, True, -1.0)
    chart = make_chart([only], [only])
    assert chart is not None
    assert len(chart["dots"]) == 1
