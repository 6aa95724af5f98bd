"""The study of what an attacker gains by being told the defence: trials and journal."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.told_defences import (
    ATTACKS,
    PHASES,
    TRAINING,
    ToldStudy,
    ToldTrial,
    make_audit,
    trials,
)

TRIAL = ToldTrial("percentile,no-base", True, images=3, public=40, private=50, model="mlp")


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(120)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(torch.arange(200)))


def test_every_defence_is_attacked_by_who_is_told_and_who_is_not() -> None:
    every = list(trials())
    assert len(set(every)) == len(every)
    assert all(parse_arm(one.arm) is not None and one.images >= 32 and one.seed > 2 for one in every)
    for arm in {one.arm for one in every} - {"none"}:
        assert {one.told for one in every if one.arm == arm} == {True, False}


def test_who_is_not_told_knows_nothing_of_the_arm_and_nobody_has_the_clients_images() -> None:
    told, untold = (make_audit(small_data(), replace(TRIAL, told=known), TRAINING) for known in (True, False))
    assert told.settings.knows_defence
    assert not untold.settings.knows_defence
    ours, theirs = (
        {image.numpy().tobytes() for image in images} for images in (told.public.images, told.data.train.images)
    )
    assert (len(ours), len(theirs)) == (40, 50)
    assert ours.isdisjoint(theirs)


@pytest.mark.slow
def test_a_trial_has_a_cell_for_each_phase_and_attack_and_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = ToldStudy(tmp_path, small_data(), replace(TRAINING, epochs=1, test_every=1, batch_size=25))
    study.run([TRIAL], silent)
    (entry,) = study.journal.read()
    assert entry["trial"] == TRIAL.to_record()
    assert [(cell["phase"], cell["attack"]) for cell in entry["cells"]] == [(p, a) for p in PHASES for a in ATTACKS]
    assert all(len(cell["rows"]) == 3 and cell["outcome"] for cell in entry["cells"])
    assert "cap" in entry["used"]["percentile"]

    def refuse(*_: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setattr(ToldStudy, "run_trial", refuse)
    study.run([TRIAL], silent)
