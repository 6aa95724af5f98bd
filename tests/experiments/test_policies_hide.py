"""The study of what policies hide: trials, journal and control."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.policies_hide import (
    PHASES,
    TRAINING,
    HideStudy,
    HideTrial,
    compare,
    make_audit,
    share_images,
    trials,
)

TRIAL = HideTrial("policy:3-1-7", 0, images=12, public=40, private=50, model="mlp")


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(120)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(torch.arange(200)))


def make_study(folder: Path) -> HideStudy:
    return HideStudy(folder, small_data(), replace(TRAINING, epochs=1, test_every=1, batch_size=25))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> HideStudy:
    made = make_study(tmp_path_factory.mktemp("study"))
    made.run([TRIAL], silent)
    return made


def test_every_trial_names_an_arm_once_for_each_seed() -> None:
    every = list(trials())
    assert len(set(every)) == len(every)
    assert all(parse_arm(one.arm) and one.images >= 200 for one in every)


@pytest.mark.slow
def test_a_trial_has_rows_and_a_control_for_each_phase(study: HideStudy) -> None:
    (entry,) = study.journal.read()
    assert entry["trial"] == TRIAL.to_record()
    assert 0 <= entry["test_accuracy"] <= 1
    for phase in PHASES:
        rows, swapped = entry["phases"][phase]["rows"], entry["phases"][phase]["swapped"]
        assert len(rows) == 12
        assert all(row["status"] == "ok" and row["advantage_original"] is not None for row in rows)
        assert 0 <= len(swapped) <= 12


@pytest.mark.slow
def test_what_is_in_the_journal_is_not_run_again(study: HideStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was run again")

    monkeypatch.setattr(HideStudy, "run_trial", refuse)
    make_study(study.folder).run([TRIAL], silent)
    with pytest.raises(AssertionError):
        make_study(study.folder).run([replace(TRIAL, seed=1)], silent)


def test_the_attacker_has_none_of_the_clients_images() -> None:
    audit = make_audit(small_data(), TRIAL, TRAINING)
    ours, theirs, attacked = (
        {image.numpy().tobytes() for image in images}
        for images in (audit.public.images, audit.data.train.images, audit.data.test.images[list(audit.places)])
    )
    assert (len(ours), len(theirs), len(attacked)) == (40, 50, 12)
    assert ours.isdisjoint(theirs)
    assert ours.isdisjoint(attacked)
    assert share_images(60, TRIAL) == (30, 30)


def test_a_picture_is_compared_with_its_own_image_and_with_the_next() -> None:
    gains = torch.tensor([[3.0, -1.0, 0.0], [2.0, 1.0, 5.0], [0.0, 0.0, 1.0]])
    assert compare(gains, 0) == {"gain": 3, "identified": True, "swapped_gain": -1, "swapped_identified": False}
    assert compare(gains, 1) == {"gain": 1, "identified": False, "swapped_gain": 5, "swapped_identified": True}
