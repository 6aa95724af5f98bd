from dataclasses import replace

import pytest

from gradveil.attacks import LEARNED_VERSION
from gradveil.errors import SettingsError
from gradveil.experiments.paper.quirks import CIFAR10_STATISTICS, HALVED_LOSS
from gradveil.experiments.paper.units import (
    LEARNED,
    LEARNER,
    STUDIED_STANDARD,
    AttackUnit,
    ScoreUnit,
    SearchUnit,
    TrainUnit,
    data_of,
    model_of,
    with_models,
)
from gradveil.experiments.versions import STANDARD
from gradveil.training import FAST

MODEL = TrainUnit("sample", "mlp", "crop-flip", FAST)
ATTACK = AttackUnit(MODEL, "none", "adam-cosine", 0, 4)
SCORE = ScoreUnit(MODEL, "3-1-7", 4)


def test_what_is_the_same_has_the_same_key_and_what_differs_has_another() -> None:
    assert replace(MODEL, training=replace(FAST)).key == MODEL.key
    others = [
        replace(MODEL, seed=1),
        replace(MODEL, training=replace(FAST, epochs=3)),
        replace(MODEL, quirks=(CIFAR10_STATISTICS,)),
    ]
    changed = [
        replace(ATTACK, first=4),
        replace(ATTACK, steps=5),
        replace(ATTACK, told=True),
        replace(ATTACK, model=others[0]),
        replace(ATTACK, quirks=(HALVED_LOSS,)),
    ]
    keys = [unit.key for unit in (MODEL, *others, ATTACK, *changed, SCORE, replace(SCORE, curves=True))]
    assert len(set(keys)) == len(keys)


def test_a_quirk_that_changes_nothing_in_a_unit_is_refused() -> None:
    with pytest.raises(SettingsError, match="choose from cifar10-statistics"):
        replace(MODEL, quirks=(HALVED_LOSS,))
    with pytest.raises(SettingsError, match="choose from halved-loss"):
        replace(ATTACK, quirks=(CIFAR10_STATISTICS,))


def test_clients_are_whole() -> None:
    with pytest.raises(SettingsError, match="whole clients"):
        replace(ATTACK, per_client=3)


def test_models_come_first_and_once_and_only_where_they_are_needed() -> None:
    fresh = replace(ATTACK, phase="init", first=8)
    other = SearchUnit(replace(MODEL, seed=1), 8, 4, 2)
    assert with_models([ATTACK, fresh, SCORE, ATTACK, other]) == [MODEL, other.model, ATTACK, fresh, SCORE, other]
    assert model_of(fresh) is None
    assert model_of(MODEL) is None
    assert data_of(fresh) == data_of(MODEL) == "sample"


def test_versions_of_attacks_are_only_of_what_has_them() -> None:
    assert ATTACK.versions()[STANDARD] is None
    assert replace(ATTACK, attack="standard").versions()[STANDARD] == STUDIED_STANDARD
    assert LEARNED not in ATTACK.versions()
    assert replace(ATTACK, attack=LEARNER).versions()[LEARNED] == LEARNED_VERSION


def test_names_say_what_is_run() -> None:
    assert MODEL.name() == "train mlp on sample, crop-flip, seed 0"
    assert "adam-cosine on mlp" in ATTACK.name()
    assert "3-1-7" in SCORE.name()
