"""The study of the defences: trials, journal, table, picture."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.defence_tables import Line, make_lines, make_panels, render_markdown
from gradveil.experiments.defences import GREY, PARTS, DefenceStudy, Trial
from gradveil.reports.pareto import Point, draw_pareto, pareto_front
from gradveil.training import FAST

TRIALS = [
    Trial("trial", GREY, "lenet", arm, seed, 1)
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
    monkeypatch.setattr(again, "run_jobs", lambda *_: pytest.fail("ran again"))
    again.run(TRIALS, silent)
    assert len(again.entries()) == len(TRIALS)


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


def test_seeds_are_pooled_and_random_policies_averaged(study: DefenceStudy) -> None:
    plain, private, random = make_lines(TRIALS, study.entries())
    assert isinstance(plain, Line)
    assert isinstance(private, Line)
    assert isinstance(random, Line)
    assert (plain.arm, plain.trials, plain.images) == ("crop-flip", 2, 2)
    assert private.epsilon is not None
    assert plain.epsilon is None
    assert random.arm == "random-policy"
    for line in (plain, random):
        assert [figure is not None and figure.count for figure in (line.fed["final"], line.original["init"])] == [2, 2]
    assert private.bound is not None
    assert 0.01 < private.bound < 1


def test_the_table_has_a_line_for_each_arm(study: DefenceStudy) -> None:
    more = [*TRIALS, replace(TRIALS[0], seed=2), replace(TRIALS[0], arm="sign")]
    lines = make_lines(more, study.entries())
    lost = {"trial": replace(TRIALS[0], arm="clip:1").to_record(), "diverged": "the loss is nan"}
    (only,) = make_lines([replace(TRIALS[0], arm="clip:1")], [lost])
    assert only.texts(None)[:3] == ["`clip:1`", "0 of 1", "1 diverged"]
    text = render_markdown({"trial": more}, {"trial": lines}, study.describe())
    assert len(re.findall(r"^\| `", text, re.MULTILINE)) == len(lines)
    assert "| 1.0× |" in text
    assert "| `crop-flip` | 2 of 3 |" in text
    assert "| `sign` | 0 of 1 | not run |" in text
    assert "`lenet` on 100% of the images; the attack has 1 steps for each member." in text
    panels = make_panels(lines)
    assert [[point.name for point in points] for points in panels.values()] == [
        ["crop-flip", "dpsgd:noise=1:clip=1", "random-policy"]
    ] * 4
    picture = draw_pareto(panels, "trial")
    assert picture.startswith(b"\x89PNG")


def test_no_point_of_the_front_is_beaten() -> None:
    points = [Point(str(place), float(place * 7 % 10), float(place * 3 % 10)) for place in range(10)]
    front = pareto_front(points)
    for point in points:
        beaten = any(p.advantage <= point.advantage and p.accuracy >= point.accuracy for p in points if p != point)
        assert (point in front) == (not beaten)


def test_worse_than_chance_is_no_place_on_the_front() -> None:
    points = [Point("useless", -2.0, 0.1), Point("useful", -1.0, 0.7), Point("leaky", 9.0, 0.9)]
    assert [point.name for point in pareto_front(points)] == ["useful", "leaky"]
