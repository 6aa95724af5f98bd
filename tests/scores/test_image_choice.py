"""Scored images are balanced over the classes, and are not attacked ones."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradveil import data as data_sets
from gradveil.data import DataSet, choose_attacked
from gradveil.errors import SettingsError
from gradveil.scores import choose_accuracy_images, choose_privacy_images, count_scorable

SAMPLE = data_sets.load("fashion-mnist-sample")


def sorted_by_class(count: int) -> DataSet:
    """Take test images and store them class by class, as folders do."""
    test = SAMPLE.test.take(torch.arange(count))
    return replace(SAMPLE, test=test.take(test.labels.argsort(stable=True)))


def spans(data: DataSet, places: list[int]) -> int:
    """Say by how much the largest class exceeds the smallest."""
    counts = Counter(data.test.labels[places].tolist())
    return max(counts.values()) - min(counts[label] for label in range(data.classes))


def test_on_class_sorted_data_few_images_see_every_class() -> None:
    data = sorted_by_class(1000)
    assert spans(data, choose_privacy_images(data, 20, 0)) == 0
    assert spans(data, list(range(200, 300, 5))) == 20, "the places of the papers' code are of one class here"


@given(st.integers(5, 200), st.data())
def test_places_are_different_and_never_attacked(total: int, data: st.DataObject) -> None:
    few = sorted_by_class(total)
    count = data.draw(st.integers(1, count_scorable(total)))
    places = choose_privacy_images(few, count, 3)
    assert len(set(places)) == count
    assert not set(places) & set(choose_attacked(few, total - count_scorable(total), 3))
    assert choose_privacy_images(few, count, 3) == places


@given(st.integers(2, 90), st.integers(1, 12))
def test_every_batch_is_balanced(size: int, batches: int) -> None:
    data = sorted_by_class(1000)
    places = choose_accuracy_images(data, 1, size, batches)
    assert len(set(places)) == len(places) == size * min(batches, 800 // size)
    assert set(places) == set(choose_privacy_images(data, len(places), 1))
    for start in range(0, min(len(places), 400), size):
        # Up to half of the images, no class runs short.
        if len(places) <= 400:
            assert spans(data, places[start : start + size]) <= 1


def test_what_does_not_fit_is_refused() -> None:
    for count in (0, 801):
        with pytest.raises(SettingsError, match="give from 1 to 800; the other 200 are for attacks"):
            choose_privacy_images(SAMPLE, count, 0)
    assert len(choose_accuracy_images(sorted_by_class(450), 0, batch=100)) == 300
    with pytest.raises(SettingsError, match="give smaller batches"):
        choose_accuracy_images(sorted_by_class(100), 0, batch=100)
