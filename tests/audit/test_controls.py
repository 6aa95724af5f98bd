"""The positive and the negative control of the whole audit, on real images."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from gradveil import data
from gradveil.audit import Audit, AuditSettings, Summary
from gradveil.defences import Defence, Hook
from gradveil.types import Update

SETTINGS = AuditSettings(phases=("init",), images=8, places=tuple(range(8)), steps=240, floor_images=1000)


@dataclass(frozen=True, repr=False)
class PureNoise(Defence):
    """Release noise of the gradient's size: nothing of the image is left."""

    hooks: ClassVar[tuple[Hook, ...]] = ("release",)

    def __str__(self) -> str:
        return "noise"

    def release(self, update: Update, generator: torch.Generator) -> Update:
        noise = {
            name: torch.randn(tensor.shape, generator=generator) * tensor.std(correction=0)
            for name, tensor in update.tensors.items()
        }
        return replace(update, tensors=noise)


def attack_untrained(*defences: Defence) -> Summary:
    """Audit the default model before training under an arm of our own."""
    sample = data.load("fashion-mnist-sample")
    (summary,) = Audit(SETTINGS, data=sample, arms=[defences]).run().summaries
    return summary


@pytest.mark.slow
def test_without_defence_the_attack_succeeds() -> None:
    summary = attack_untrained()
    assert summary.failed == 0
    assert summary.figures["advantage_transformed"].mean >= 6
    assert summary.figures["ssim_transformed"].mean >= 0.6
    assert summary.outcome == "leaks"
    assert summary.identification is not None
    assert summary.identification.found >= 6


@pytest.mark.slow
def test_from_noise_the_attack_gains_nothing() -> None:
    summary = attack_untrained(PureNoise())
    assert summary.arm == "noise"
    assert summary.failed == 0
    for target in ("transformed", "original"):
        low = summary.figures[f"advantage_{target}"].low
        assert low is not None
        assert low <= 0
    # Eight images are too few to say that nothing leaks.
    assert summary.outcome == "undecided"
    assert summary.hits == ()
