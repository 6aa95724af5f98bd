"""Scored images are not attacked ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.errors import SettingsError
from gradveil.scores import choose_accuracy_images, choose_privacy_images


def test_the_papers_places() -> None:
    assert choose_privacy_images(10_000, 100) == list(range(200, 700, 5))
    assert choose_accuracy_images(10_000) == list(range(200, 1200))


@given(st.integers(5, 2000), st.data())
def test_places_are_different_and_inside(total: int, data: st.DataObject) -> None:
    first = min(200, total // 5)
    count = data.draw(st.integers(1, total - first))
    places = choose_privacy_images(total, count)
    assert len(set(places)) == count
    assert first <= min(places) <= max(places) < total


def test_what_does_not_fit_is_refused() -> None:
    for count in (0, 801):
        with pytest.raises(SettingsError, match="give from 1 to 800; the first 200 are attacked"):
            choose_privacy_images(1000, count)
    assert len(choose_accuracy_images(450, batch=100)) == 300
    with pytest.raises(SettingsError, match="give smaller batches"):
        choose_accuracy_images(100, batch=100)
