"""One line per arm, phase and attack."""

from dataclasses import replace
from typing import Any

import pytest

from gradveil.audit import Cell, Row
from gradveil.audit.summary import converged_of, pool_random_policies, summarise


def make_row(image: int, advantage: float, **changes: Any) -> Row:
    """Make the row of an image that gained so much over a floor of 10 dB at both targets, and has a limit of 1 dB."""
    values = {"psnr": 10 + advantage, "floor": 10.0, "aligned": 10 + advantage, "aligned_floor": 10.0}
    figures: dict[str, Any] = {
        f"{name}_{target}": value for name, value in values.items() for target in ("transformed", "original")
    }
    row = Row(
        "none",
        "init",
        "fast",
        image,
        0,
        "ok",
        **figures,
        advantage_transformed=advantage,
        advantage_original=advantage,
        ssim_transformed=0.5,
        ssim_original=0.5,
        statistic=advantage,
        limit=1.0,
        reached=advantage > 1,
        p_value=1e-5 if advantage > 5 else 0.5,
        identified=advantage > 1,
        crowd=20,
        match_rebuilt=0.1,
        match_truth=0.1,
        matching_loss=0.1,
        label_found=True,
        seconds=1.0,
    )
    return replace(row, **changes)


def make_cell(advantages: list[float], arm: str = "none", failed: int = 0, **changes: Any) -> Cell:
    rows = [make_row(image, advantage, arm=arm, **changes) for image, advantage in enumerate(advantages)]
    rows += [Row(arm, "init", "fast", 100 + image, 0, "failed", reason="it broke") for image in range(failed)]
    return Cell(arm, "init", "fast", tuple(rows), tuple(value / 100 - 1 for value in range(200)))


def test_the_figures_of_a_cell() -> None:
    summary = summarise(make_cell([4.0, 2.0, -1.0, 6.0, 3.0, 0.0], failed=1), "diagnostic", 1.0)
    assert (summary.images, summary.failed, summary.worst, summary.worst_advantage) == (7, 1, 3, 6.0)
    assert summary.figures["advantage_transformed"].mean == pytest.approx(14 / 6)
    assert summary.figures["advantage_original"].median == 2.5
    assert summary.share is not None
    assert (summary.share.reached, summary.share.images) == (4, 6)
    assert summary.identification is not None
    assert (summary.identification.found, summary.identification.candidates) == (4, 20)
    assert summary.identification.low < summary.identification.rate < summary.identification.high
    assert summary.null is not None
    assert summary.null.median == pytest.approx(-0.005)
    assert summary.threshold == 1.0
    assert summary.label_accuracy == 1.0


def test_few_images_have_no_interval_and_no_image_has_no_figure() -> None:
    few = summarise(make_cell([1.0] * 5), "diagnostic", 1.0)
    assert few.figures["advantage_transformed"].low is None
    none = summarise(make_cell([], failed=2), "diagnostic", 1.0)
    assert (none.figures, none.share, none.advantage) == ({}, None, None)


def test_the_larger_of_the_two_mean_advantages_counts() -> None:
    summary = summarise(make_cell([7.0, 8.0, 7.5], advantage_transformed=-5.0), "diagnostic", 1.0)
    assert summary.advantage == summary.figures["advantage_original"]


def test_a_cell_converged_as_far_as_its_pictures_explain_the_release() -> None:
    rows = [make_row(0, 0.0, match_rebuilt=0.4), make_row(1, 0.0), make_row(2, 0.0, match_rebuilt=None)]
    assert converged_of(rows) == 0.5
    assert converged_of(rows[2:]) is None


def test_random_policies_are_pooled_by_phase_and_attack() -> None:
    arms = [f"random-policy:{number}" for number in range(3)]
    summaries = [summarise(make_cell([float(number)] * 2, arm), "diagnostic", 1.0) for number, arm in enumerate(arms)]
    (pooled,) = pool_random_policies(summaries)
    assert (pooled.policies, pooled.advantage.mean) == (3, 1.0)
    assert pool_random_policies(summaries[:1]) == ()
