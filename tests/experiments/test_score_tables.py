"""How well scores predict attacks: correlations, and the table from the journals."""

from typing import Any

import numpy as np
import pytest

from gradveil.experiments.score_tables import correlate, make_lines, render_markdown


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


def test_scores_by_another_loss_have_lines_of_their_own() -> None:
    policies = [f"{index}" for index in range(10)]
    cell = {"model": "m", "phase": "init", "score": "S_pri"}
    scored: list[dict[str, Any]] = [
        {"cell": {**cell, "policy": p, **loss}, "values": [sign * int(p)], "seconds": 1}
        for p in policies
        for sign, loss in ((1, {}), (-1, {"loss": "cross-entropy:smoothing=0.1"}))
    ]
    row = {"status": "ok", "psnr_transformed": 1.0, "floor_transformed": 1.0}
    attacked: list[dict[str, Any]] = [
        {
            "cell": {"part": "scores", "model": "m", "phase": "init", "arm": f"policy:{p},no-base"},
            "rows": [{**row, "advantage_transformed": float(p)}],
        }
        for p in policies
    ]
    lines = [line for line in make_lines(policies, scored, attacked) if line.outcome == "advantage_transformed"]
    assert [(line.texts()[2], round(line.pearson.value, 6)) for line in lines] == [
        ("S_pri", 1.0),
        ("S_pri, cross-entropy:smoothing=0.1", -1.0),
    ]
