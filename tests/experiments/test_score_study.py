"""The study of the scores: what is drawn, that nothing is computed twice, and the correlations."""

from pathlib import Path

import numpy as np
import pytest

from gradveil import data
from gradveil.experiments import score_study
from gradveil.experiments.score_study import SCORES, ScoreStudy, attack_cells, study_policies
from gradveil.experiments.score_tables import correlate, make_lines, render_markdown
from gradveil.scores import function_of
from gradveil.transforms import parse_policy


def silent(what: str, done: int, total: int) -> None:
    """Report to nobody."""


def test_the_policies_are_distinct_functions_and_a_longer_draw_only_adds() -> None:
    policies = study_policies(0, 40)
    assert len({function_of(parse_policy(policy)) for policy in policies}) == 40
    assert study_policies(0, 10) == policies[:10]
    assert study_policies(1, 10) != policies[:10]


def test_the_scored_images_are_not_the_attacked_ones() -> None:
    assert not set(score_study.SCORED) & set(score_study.ATTACKED)
    cells = list(attack_cells(["lenet"], ["3-1-7"]))
    assert [cell.phase for cell in cells] == ["init", "step-10", "final"]
    assert all(cell.images == score_study.ATTACKED for cell in cells)


def test_every_score_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_study, "SCORED", (200, 201, 202, 203))
    monkeypatch.setattr(score_study, "SCORES", {name: make for name, make in SCORES.items() if "brief" not in name})
    study = ScoreStudy(tmp_path, data.load("fashion-mnist-sample"))
    study.run_scores("lenet", "init", ["3-1-7", "43-18-18"], silent)
    first = study.journal.read()
    assert {entry["cell"]["score"] for entry in first} == {name for name in SCORES if "brief" not in name}
    assert all(len(entry["values"]) == 4 for entry in first)
    study.run_scores("lenet", "init", ["3-1-7", "43-18-18"], silent)
    assert study.journal.read() == first


def test_correlation_finds_what_is_there_and_not_what_is_not() -> None:
    source = np.random.default_rng(0)
    scores, noise = source.normal(size=60), source.normal(size=60)
    same = correlate(scores, np.exp(scores), rank=True)
    assert (same.value, same.low, same.high) == pytest.approx((1, 1, 1))
    assert correlate(scores, np.exp(scores), rank=False).value < 0.99
    none = correlate(scores, noise, rank=True)
    assert none.low < 0 < none.high
    assert correlate(np.ones(60), noise, rank=False).value == 0


def test_the_table_joins_by_policy_and_leaves_out_failed_attacks() -> None:
    policies = [f"{index}" for index in range(12)]
    scored = [
        {
            "cell": {"model": "m", "phase": "init", "policy": p, "score": "S_pri"},
            "values": [int(p), int(p)],
            "seconds": 1,
        }
        for p in policies
    ]
    attacked = [
        {
            "cell": {"part": "scores", "model": "m", "phase": "init", "arm": f"policy:{p},no-base"},
            "rows": [
                {
                    "status": "failed" if p == "3" else "ok",
                    "psnr_transformed": -float(p),
                    "advantage_transformed": float(p),
                    "floor_transformed": 1.0,
                }
            ],
        }
        for p in policies
    ]
    lines = make_lines(policies, scored, attacked)
    assert [(line.outcome, line.policies, round(line.pearson.value, 6)) for line in lines] == [
        ("psnr_transformed", 11, -1.0),
        ("advantage_transformed", 11, 1.0),
        ("floor_transformed", 11, 0.0),
    ]
    assert "| m | init | S_pri | 11 | advantage | +1.00 (+1.00 to +1.00) |" in render_markdown(lines)
