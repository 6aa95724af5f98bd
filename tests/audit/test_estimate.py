from dataclasses import replace

import pytest

from gradveil import data
from gradveil.audit import Audit, AuditSettings, estimate_audit
from gradveil.training import BRIEF

SAMPLE = data.load("fashion-mnist-sample")
SMALL = AuditSettings(
    arms=("none", "crop-flip"), phases=("init",), attacks=("fast",), images=4, steps=10, floor_images=200
)


def estimate(workers: int = 1, **changes: object) -> tuple[dict[str, int], float, tuple[str, ...]]:
    found = estimate_audit(Audit(replace(SMALL, **changes), data=SAMPLE), workers)  # type: ignore[arg-type]
    return dict(found.counts), found.seconds, found.notes


def test_cells_attacks_and_gradients_are_counted() -> None:
    counts, seconds, notes = estimate()
    each = Audit(SMALL, data=SAMPLE).attacks["fast"].gradients
    assert each >= 10
    assert counts == {"cells": 2, "attacks on one image": 8, "gradients": 8 * each, "training steps": 0}
    assert seconds > 0
    assert notes == ()


def test_training_is_counted_if_there_is_one() -> None:
    counts, _, _ = estimate(phases=("init", "final"))
    assert counts["training steps"] == 2 * BRIEF.epochs * BRIEF.steps_per_epoch(len(SAMPLE.train))


def test_an_attack_without_steps_is_named() -> None:
    counts, seconds, notes = estimate(attacks=("analytic",), steps=None)
    assert (counts["gradients"], seconds) == (0, 0.0)
    assert notes == ("analytic: takes no steps; its time is not in the estimate",)


def test_rehearsed_images_are_counted_and_learning_is_named() -> None:
    counts, _, notes = estimate(attacks=("standard",), steps=None, gradients=50)
    standard = Audit(replace(SMALL, attacks=("standard",), steps=None, gradients=50), data=SAMPLE).attacks["standard"]
    assert counts["attacks on one image"] == 8
    assert counts["gradients"] == 2 * (4 + standard.rehearsed_images) * standard.gradients
    assert standard.rehearsed_images > 0
    assert notes == ("standard: learns on public images first; that time is not in the estimate",)
    batches, _, _ = estimate(attacks=("standard",), steps=None, gradients=50, images_per_client=2)
    assert batches["gradients"] == 2 * 4 * standard.gradients, "batches are not rehearsed"


@pytest.mark.slow
def test_the_estimate_is_of_the_right_order() -> None:
    audit = Audit(replace(SMALL, images=8, steps=200, stop_early=False), data=SAMPLE)
    guessed = estimate_audit(audit, 1).seconds
    took = sum(one.seconds for one in audit.run().attacked)
    assert guessed / 4 < took < guessed * 4
