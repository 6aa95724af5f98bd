"""The settings of a search: JSON and back, earlier versions, and nonsense."""

import json
from dataclasses import replace

import pytest

from gradveil.errors import InputError, SettingsError, UnknownNameError
from gradveil.search import SearchSettings
from tests.search.runs import SMALL

GIVEN = replace(SMALL, training=None, weights="drawn")


@pytest.mark.parametrize("settings", [SMALL, GIVEN, SearchSettings()], ids=["small", "given weights", "default"])
def test_settings_survive_json(settings: SearchSettings) -> None:
    record = json.loads(json.dumps(settings.to_record()))
    again = SearchSettings.from_record(record)
    assert again == replace(settings, quadrature=settings.rule, loss=settings.scoring_loss)
    assert again.to_record() == settings.to_record()


def test_settings_of_an_earlier_version_are_read() -> None:
    record = json.loads(json.dumps(SearchSettings().to_record()))
    del record["loss"], record["training"]["loss"]
    record["training"]["label_smoothing"] = 0.1
    assert SearchSettings.from_record(record) == replace(SearchSettings(), quadrature="lobatto-7")
    with pytest.raises(UnknownNameError, match="unknown search setting 'colour'"):
        SearchSettings.from_record({**record, "colour": 1})


def test_the_loss_is_that_of_the_training_or_of_the_weights() -> None:
    assert SearchSettings().scoring_loss == "cross-entropy:smoothing=0.1"
    assert GIVEN.scoring_loss == "cross-entropy"
    assert replace(GIVEN, loss="cross-entropy:smoothing=0.2").scoring_loss == "cross-entropy:smoothing=0.2"
    with pytest.raises(SettingsError, match=r"the training has cross-entropy:smoothing=0.1"):
        SearchSettings(loss="cross-entropy")


def test_nonsense_is_refused() -> None:
    with pytest.raises(SettingsError, match="keep 11 of 10"):
        SearchSettings(candidates=10, keep=11)
    with pytest.raises(SettingsError, match="there are 50 policies"):
        SearchSettings(length=1)
    for name, value in {
        "candidates": 0, "images": 0, "length": 4, "error": 0.0, "accuracy_sample": 1, "strategy": "magic",
        "score": "beauty", "select": "luck", "quadrature": "simpson-3", "accuracy_threshold": "high", "seed": -1,
        "weights": "both", "loss": "hinge",
    }.items():  # fmt: skip
        with pytest.raises(InputError):
            SearchSettings(**{name: value})  # type: ignore[arg-type]
