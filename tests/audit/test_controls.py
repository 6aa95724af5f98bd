"""The positive and the negative control of the whole audit, on real images."""

from dataclasses import dataclass, replace

import pytest
import torch

from gradveil import data
from gradveil.attacks import find_attack, with_steps
from gradveil.audit.cells import AttackJob
from gradveil.audit.floors import make_floors
from gradveil.audit.rows import Row, Truth, score_cell
from gradveil.audit.summary import summarise_cell
from gradveil.defences import Arm, Defence
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Batch, Update, to_pixels

IMAGES = 8
STEPS = 240


@dataclass(frozen=True, repr=False)
class PureNoise(Defence):
    """Release noise of the gradient's size: nothing of the image is left."""

    def __str__(self) -> str:
        return "noise"

    def release(self, update: Update, generator: torch.Generator) -> Update:
        noise = {
            name: torch.randn(tensor.shape, generator=generator) * tensor.std(correction=0)
            for name, tensor in update.tensors.items()
        }
        return replace(update, tensors=noise)


def attack_untrained(arm: Arm) -> list[Row]:
    """Attack the default model before training, as the audit does, under an arm of our own."""
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    truths = []
    for image in range(IMAGES):
        pixels = to_pixels(sample.test.images[image : image + 1])
        truths.append(Truth(image, int(sample.test.labels[image]), pixels, pixels))
    job = AttackJob(
        spec,
        spec.build(generator(0, "model")).state_dict(),
        tuple(Batch(truth.transformed, torch.tensor([truth.label])) for truth in truths),
        tuple(range(IMAGES)),
        arm,
        "init",
        with_steps(find_attack("fast"), STEPS),
        "fast",
        True,
        0,
        "cpu",
    )
    floors = make_floors(sample, [arm], 1000, True, 0, lambda _: None)
    return score_cell(arm.name, "init", "fast", truths, job.run(lambda *_: None), floors[arm.name])


@pytest.mark.slow
def test_without_defence_the_attack_succeeds() -> None:
    summary = summarise_cell("none", "init", "fast", attack_untrained(Arm("none", ())))
    assert summary.failed == 0
    assert summary.figures["advantage_transformed"].mean >= 6
    assert summary.figures["ssim_transformed"].mean >= 0.6
    assert summary.finding == "leak"


@pytest.mark.slow
def test_from_noise_the_attack_gains_nothing() -> None:
    summary = summarise_cell("noise", "init", "fast", attack_untrained(Arm("noise", (PureNoise(),))))
    assert summary.failed == 0
    for target in ("transformed", "original", "aligned"):
        low = summary.figures[f"advantage_{target}"].low
        assert low is not None
        assert low <= 0
    assert summary.finding == "no leak found"
