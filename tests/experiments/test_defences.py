"""The study of the defences: trials and journal."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.defences import GREY, PARTS, DefenceStudy, DefenceTrial, TrialJob
from gradveil.experiments.versions import versions_of
from gradveil.training import FAST

TRIALS = [
    DefenceTrial("trial", GREY, "lenet", arm, seed, 1)
    for arm, seed in [
        ("crop-flip", 0),
        ("crop-flip", 1),
        ("dpsgd:noise=1:clip=1", 0),
        ("random-policy:0", 0),
        ("random-policy:1", 0),
    ]
]


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(60)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


def make_study(folder: Path) -> DefenceStudy:
    training = replace(FAST, epochs=1, batch_size=30, threads=1)
    return DefenceStudy(folder, {GREY: small_data()}, "fast", 1, training, floor_images=60)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> DefenceStudy:
    made = make_study(tmp_path_factory.mktemp("study"))
    made.run(TRIALS, silent)
    return made


def test_every_trial_names_an_arm_once() -> None:
    for part, make in PARTS.items():
        trials = list(make())
        assert len(set(trials)) == len(trials)
        assert all(trial.part == part and parse_arm(trial.arm) for trial in trials)
        counts = [sum(trial.images for trial in trials if trial.arm == arm) for arm in ("none", "crop-flip", "sign")]
        assert min(counts) >= 12


def test_what_is_in_the_journal_is_not_run_again(study: DefenceStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    again = make_study(study.folder)
    monkeypatch.setattr(TrialJob, "run", lambda *_: pytest.fail("ran again"))
    again.run(TRIALS, silent)
    assert len(again.entries()) == len(TRIALS)


def test_the_images_are_those_of_the_balanced_choice(study: DefenceStudy) -> None:
    for entry in study.entries():
        (place,) = data.choose_attacked(small_data(), 1, entry["trial"]["seed"])
        assert {row["image"] for row in entry["rows"]} == {place}
        assert entry["provenance"]["torch"]


def test_a_training_that_diverges_is_noted(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.training = replace(study.training, learning_rate=3e38, muon=0.0)
    study.run(TRIALS[:1], silent)
    assert "diverged at step" in study.journal.read()[0]["diverged"]


def test_two_processes_find_the_same(study: DefenceStudy, tmp_path: Path) -> None:
    other = make_study(tmp_path)
    other.workers = 2
    other.run(TRIALS[:2], silent)
    found, known = ({str(entry["trial"]): entry for entry in one.entries()} for one in (other, study))
    for trial, entry in found.items():
        assert entry["test_accuracy"] == known[trial]["test_accuracy"]
        assert [{**row, "seconds": 0} for row in entry["rows"]] == [
            {**row, "seconds": 0} for row in known[trial]["rows"]
        ]
    assert len(found) == 2


def test_other_settings_are_another_study(study: DefenceStudy) -> None:
    other = make_study(study.folder)
    other.steps = 2
    assert other.entries() == []


def test_another_attack_finds_the_models_trained(study: DefenceStudy) -> None:
    other = make_study(study.folder)
    other.steps = 3
    other.run(TRIALS[:1], silent)
    (again,) = other.entries()
    before = next(entry for entry in study.entries() if entry["trial"] == again["trial"])
    assert again["training_seconds"] == before["training_seconds"]
    assert again["test_accuracy"] == before["test_accuracy"]


def test_trials_of_an_earlier_audit_are_read_and_told_apart(tmp_path: Path) -> None:
    """The first version did not name itself, and wrote the loss as a label smoothing."""
    study = make_study(tmp_path)
    described = study.describe()
    training = {**described["training"], "label_smoothing": 0.1}
    del described["audit_version"], described["image_choice"], training["loss"]
    study.journal.append({"trial": TRIALS[0].to_record(), "study": {**described, "training": training}})
    assert study.entries() == []
    (old,) = study.entries_of_any_version()
    assert versions_of(old)["audit_version"] == versions_of(old)["image_choice"] == 1
    study.steps = 99
    assert study.entries_of_any_version() == []
