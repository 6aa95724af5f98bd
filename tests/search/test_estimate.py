from dataclasses import replace

from gradveil import data
from gradveil.scores import find_quadrature
from gradveil.search import SearchSettings, estimate_search

SAMPLE = data.load("fashion-mnist-sample")
SETTINGS = SearchSettings(candidates=6, keep=2, images=4)


def test_the_most_that_can_be_scored_is_counted() -> None:
    found = estimate_search(SETTINGS, SAMPLE, None, 1)
    assert found.counts["candidates"] == 6
    assert found.counts["gradients"] == 6 * 4 * len(find_quadrature(SETTINGS.rule).nodes)
    assert found.counts["training steps"] > 0
    assert found.seconds > 0
    assert "dropped early" in found.notes[0]


def test_random_search_drops_nothing() -> None:
    assert estimate_search(replace(SETTINGS, strategy="random"), SAMPLE, None, 1).notes == ()
