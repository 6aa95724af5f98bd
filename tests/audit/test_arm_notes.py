"""Every kind of defence in a real, if tiny, audit, and what the report says of it."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from gradveil import data
from gradveil.audit import AuditReport, AuditSettings, run_audit
from gradveil.data import DataSet
from gradveil.defences import expand_arms, parse_defence
from gradveil.reports import render_report
from gradveil.training import BRIEF

ARMS = (
    "none",
    "gaussian:1e-3",
    "prune:70,policy:3-1-7,no-base",
    "mixup",
    "instahide",
    "dpsgd:noise=1:clip=1",
    "soteria:40",
    "precode:width=8",
    "censor:trials=2",
    "oasis",
    "percentile",
)
SMALL = AuditSettings(
    model="lenet",
    arms=ARMS,
    images=2,
    steps=2,
    floor_images=100,
    training=replace(BRIEF, epochs=1, batch_size=100),
)


@cache
def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(200)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


@cache
def report() -> AuditReport:
    return run_audit(SMALL, small_data())


def test_every_arm_is_attacked_in_every_phase() -> None:
    assert len(report().rows) == 2 * 2 * len(ARMS)
    assert {row.status for row in report().rows} == {"ok"}


def test_the_report_says_what_each_arm_does() -> None:
    arms = report().to_figures()["arms"]
    assert arms["none"]["defences"] == ()
    assert arms["gaussian:1e-3"]["defences"] == ("crop-flip", "gaussian:0.001")
    assert arms["prune:70,policy:3-1-7,no-base"]["defences"] == ("prune:70", "policy:3-1-7")
    assert arms["precode:width=8"]["edits"] == ("Linear → Sequential(Bottleneck, Linear): head",)
    assert arms["gaussian:1e-3"]["edits"] == ()


def test_the_report_has_the_guarantees_of_dpsgd() -> None:
    notes = report().arms["dpsgd:noise=1:clip=1"]
    assert notes.training is not None
    assert (notes.training.rate, notes.training.steps) == (0.5, 2)
    assert notes.released is not None
    assert (notes.released.rate, notes.released.steps) == (1, 1)
    assert notes.bound == pytest.approx(0.0924, abs=1e-3)
    assert report().arms["gaussian:1e-3"].training is None


def test_a_mixed_image_is_not_the_original() -> None:
    for row, picture in zip(report().rows, report().pictures, strict=True):
        if row.arm in ("mixup", "instahide"):
            assert not torch.equal(picture.original, picture.transformed)


def test_the_attacker_of_an_aggregate_sees_one_update_of_all() -> None:
    settings = replace(SMALL, arms=("none", "gaussian:1e-3"), phases=("init",), participants=2)
    rows = run_audit(settings, small_data()).rows
    assert [row.status for row in rows] == ["ok"] * 4
    assert rows[0].matching_loss == rows[1].matching_loss


def test_ten_random_policies_are_averaged() -> None:
    arms = expand_arms(["random-policy,no-base"])
    assert len(arms) == 10
    found = run_audit(replace(SMALL, arms=arms[:3], phases=("init",)), small_data())
    means = [summary.advantage.mean for summary in found.summaries if summary.advantage]
    assert found.pooled[0].policies == 3
    assert found.pooled[0].advantage.mean == pytest.approx(sum(means) / 3)


def test_the_report_says_what_is_used_of_each_defence_that_the_attacker_is_told_of() -> None:
    """Where nothing is used, the page says why."""
    arms = ("clip:1", "quantise:4", "mixup", "instahide", "gaussian:1e-3", "prune:70")
    told = run_audit(replace(SMALL, arms=arms, phases=("init",), knows_defence=True), small_data())
    for arm in arms[:4]:
        assert told.arms[arm].used[arm] == parse_defence(arm).used
        assert any(f"told of {arm} and uses " in line for line in told.arms[arm].lines())
    assert "cap" in told.arms["clip:1"].used["clip:1"]
    assert told.arms["mixup"].used["mixup"].startswith("nothing, because ")
    assert "nothing yet" not in render_report(told)
    # `fast` weighs no noise; `noise-aware` does.
    assert told.arms["gaussian:1e-3"].used["gaussian:0.001"] == "nothing, because none of the attacks weighs noise"
    weighing = replace(SMALL, arms=arms[4:5], phases=("init",), attacks=("noise-aware",), steps=2)
    noise = run_audit(weighing, small_data()).arms["gaussian:1e-3"]
    assert "strength of the noise" in noise.used["gaussian:0.001"]
    untold = run_audit(replace(SMALL, arms=("mixup",), phases=("init",), knows_defence=False), small_data())
    assert untold.arms["mixup"].used == {}
