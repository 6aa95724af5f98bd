"""The study of the scores: what is drawn, and that nothing is computed twice."""

from dataclasses import replace
from pathlib import Path

import pytest

from gradveil import data
from gradveil.experiments import score_study
from gradveil.experiments.score_study import STUDIED, ScoreStudy, attack_cells, study_policies
from gradveil.scores import SCORES, function_of
from gradveil.study import silent
from gradveil.transforms import parse_policy


def test_the_policies_are_distinct_functions_and_a_longer_draw_only_adds() -> None:
    policies = study_policies(0, 40)
    assert len({function_of(parse_policy(policy)) for policy in policies}) == 40
    assert study_policies(0, 10) == policies[:10]
    assert study_policies(1, 10) != policies[:10]


def test_the_scored_images_are_not_the_attacked_ones() -> None:
    sample = data.load("fashion-mnist-sample")
    attacked = {data.choose_attacked(sample, 8, 0)[number] for number in score_study.ATTACKED}
    assert len(attacked) == 8
    assert not attacked & set(data.choose_scored(sample, score_study.SCORED, 0))
    cells = list(attack_cells(["lenet"], ["3-1-7"]))
    assert [cell.phase for cell in cells] == ["init", "step-10", "final"]
    assert all(cell.images == score_study.ATTACKED for cell in cells)


def test_every_score_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_study, "SCORED", 4)
    quick = {name: replace(studied, images=4) for name, studied in STUDIED.items() if "brief" not in name}
    monkeypatch.setattr(score_study, "STUDIED", quick)
    study = ScoreStudy(tmp_path, data.load("fashion-mnist-sample"))
    study.run_scores("lenet", "init", ["3-1-7", "43-18-18"], silent)
    first = study.journal.read()
    assert {entry["cell"]["score"] for entry in first} == set(quick)
    assert all(len(entry["values"]) == 4 for entry in first)
    study.run_scores("lenet", "init", ["3-1-7", "43-18-18"], silent)
    assert study.journal.read() == first


def test_lines_of_an_earlier_version_are_of_plain_cross_entropy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand beside new ones of the same score, and are not taken for them."""
    monkeypatch.setattr(score_study, "STUDIED", {"blind guess": replace(STUDIED["blind guess"], images=2)})
    study = ScoreStudy(tmp_path, data.load("fashion-mnist-sample"))
    old = {"model": "lenet", "phase": "init", "policy": "18", "score": "blind guess"}
    study.journal.append({"cell": old, "values": [1.0, 2.0], "seconds": 0.1})
    study.run_scores("lenet", "init", ["18"], silent)
    first, second = study.journal.read()
    assert second["cell"] == {**old, "loss": "cross-entropy:smoothing=0.1"}
    assert first["cell"] == old


def test_every_studied_score_is_registered() -> None:
    assert {studied.score for studied in STUDIED.values()} == set(SCORES)
