"""The study of what policies hide: trials, journal and control."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.attacks import GradientMatching, LearnedStart, find_attack
from gradveil.audit import Attacked
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.errors import SettingsError
from gradveil.experiments.policies_hide import (
    PHASES,
    TRAINING,
    HideStudy,
    HideTrial,
    choose_others,
    compare,
    make_audit,
    name_attack,
    share_images,
    swap,
    trials,
)
from gradveil.rounds import Truth
from gradveil.types import Reconstruction

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
    assert all(parse_arm(one.arm) and one.images >= (200 if one.attack == "learned" else 20) for one in every)
    cells = {(one.model, one.arm, one.attack) for one in every}
    assert len(every) == 3 * len(cells) == 3 * 2 * (5 + 10) * 3


def test_a_result_depends_on_the_versions_of_what_was_run_alone() -> None:
    assert "learned_version" in TRIAL.versions()
    assert "learned_version" in replace(TRIAL, attack="both").versions()
    assert "learned_version" not in replace(TRIAL, attack="matching").versions()
    assert "standard_version" not in TRIAL.versions()
    with pytest.raises(SettingsError, match="'nope'"):
        replace(TRIAL, attack="nope")


def test_a_search_begins_at_the_learnt_picture_and_looks_through_a_policy() -> None:
    through, plain = (replace(TRIAL, arm=arm, attack="both").make_attack() for arm in ("policy:3-1-7", "crop-flip"))
    assert isinstance(through, GradientMatching)
    assert isinstance(plain, GradientMatching)
    assert isinstance(through.start, LearnedStart)
    assert (through.inverts_policy, plain.inverts_policy) == (True, False)
    assert replace(TRIAL, attack="matching").make_attack() == find_attack("fast")


@pytest.mark.slow
def test_a_trial_has_rows_and_a_control_for_each_phase(study: HideStudy) -> None:
    (entry,) = study.journal.read()
    assert entry["trial"] == TRIAL.to_record()
    assert 0 <= entry["test_accuracy"] <= 1
    for phase in PHASES:
        rows, swapped = entry["phases"][phase]["rows"], entry["phases"][phase]["swapped"]
        assert len(rows) == 12
        assert all(row["status"] == "ok" and row["advantage_original"] is not None for row in rows)
        assert len(swapped) <= 12


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


def test_lines_of_the_first_version_are_of_the_one_attack_that_there_was() -> None:
    trial = TRIAL.to_record()
    old = {"trial": {name: trial[name] for name in trial if name != "attack"}, "study": {"data": "some"}}
    assert name_attack(old) == {"trial": trial, "study": {"data": "some", "learned_version": 1}}
    new = {"trial": trial, "study": {"learned_version": 2}}
    assert name_attack(new) == new


def test_a_journal_of_another_version_of_the_attack_is_refused(tmp_path: Path) -> None:
    old = make_study(tmp_path)
    old.journal.append({"trial": TRIAL.to_record(), "study": {"learned_version": 1}})
    with pytest.raises(SettingsError, match="version 1 of `learned`"):
        old.run([TRIAL], silent)


def test_the_wrong_image_is_compared_with_the_crowd() -> None:
    assert compare(torch.tensor([-1.0, 0.0, -2.0])) == {"swapped_gain": -1, "swapped_identified": False}
    assert compare(torch.tensor([5.0, 0.0, -2.0])) == {"swapped_gain": 5, "swapped_identified": True}


def test_a_picture_of_one_image_is_no_better_at_the_next_one() -> None:
    test = small_data().test
    own = [int(place) for place in (test.labels == 1).nonzero().flatten()[:3]]
    crowd = test.take(torch.arange(200).repeat(3))
    attacked = [attack_exactly(test.images[place].float()[None] / 255, 1, place) for place in own]
    found = swap(attacked, choose_others(crowd, own, 0))
    assert len(found) == 3
    assert all(one["swapped_gain"] < 3 for one in found)
    assert swap(attacked[:1], crowd) == []


def attack_exactly(image: torch.Tensor, label: int, place: int) -> Attacked:
    """Make the result of an attack that rebuilt its image to the last digit."""
    truth = Truth(place, label, image, image, label)
    return Attacked(truth, Reconstruction(image, torch.tensor([label]), 0.0), 0.0, 0.0)
