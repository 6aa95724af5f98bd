"""Findings say what the figures allow, and no more."""

from dataclasses import replace
from typing import Any

import pytest

from gradveil.audit import Row, explain, headline, summarise
from gradveil.audit.summary import Finding


def figures(advantage: float) -> dict[str, Any]:
    """Make the figures of an image that gained so much over a floor of 10 dB at every target."""
    values = {"psnr": 10 + advantage, "floor": 10.0, "advantage": advantage}
    targets = ("transformed", "original", "aligned")
    return {f"{name}_{target}": value for name, value in values.items() for target in targets}


def rows(advantages: list[float], arm: str = "none", failed: int = 0) -> list[Row]:
    sound = [
        Row(
            arm,
            "init",
            "fast",
            index,
            0,
            "ok",
            **figures(value),
            ssim_transformed=0.5,
            ssim_original=0.5,
            matching_loss=0.1,
            label_found=True,
        )
        for index, value in enumerate(advantages)
    ]
    return sound + [Row(arm, "init", "fast", 100 + index, 0, "failed") for index in range(failed)]


@pytest.mark.parametrize(
    ("advantages", "failed", "finding"),
    [
        ([8.0, 9.0, 8.5, 9.5], 0, "leak"),
        ([-2.0, -2.1, -1.9, 4.0], 0, "leak on some images"),
        ([-2.0, -2.1, -1.9, -2.2], 0, "no leak found"),
        ([-2.0, -2.1, -1.9, -2.2], 1, "undecided"),
        ([0.0, 2.0, 1.0, 2.5], 0, "undecided"),
        ([-2.0], 0, "undecided"),
        ([], 3, "no result"),
    ],
)
def test_findings(advantages: list[float], failed: int, finding: Finding) -> None:
    (summary,) = summarise(rows(advantages, failed=failed))
    assert summary.finding == finding
    assert summary.failed == failed
    assert summary.images == len(advantages) + failed


def test_the_larger_of_the_two_advantages_counts() -> None:
    shifted = [replace(row, advantage_transformed=-5.0) for row in rows([7.0, 8.0, 7.5])]
    (summary,) = summarise(shifted)
    assert summary.advantage == summary.figures["advantage_aligned"]
    assert summary.finding == "leak"


def test_no_leak_is_never_worded_as_private() -> None:
    safe = summarise(rows([-2.0, -2.1, -1.9]))
    assert "no proof of privacy" in headline(safe)
    assert "has not shown that it works" in explain(safe[0], None)
    assert "has not shown that it works" in explain(safe[0], safe[0])
    leaking = summarise(rows([8.0, 9.0, 8.5]))[0]
    assert "A stronger attack may" in explain(safe[0], leaking)
    assert "in 1 of 2" in headline([safe[0], leaking])
    assert "says nothing about privacy" in explain(summarise(rows([], failed=2))[0], leaking)
