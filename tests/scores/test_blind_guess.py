"""The blind guess: what someone reaches who saw training images only."""

import torch

from gradveil.metrics import psnr
from gradveil.scores import BlindGuessScore
from gradveil.types import Batch
from tests.scores.inputs import NONE, make_inputs


def test_it_is_minus_the_psnr_of_a_guess_that_saw_training_images_only() -> None:
    inputs = make_inputs()
    images, public, classes = inputs.images, inputs.public, inputs.task.classes
    score = BlindGuessScore(images, public, classes)
    guess = score.floor(NONE).guess(images.labels)
    torch.testing.assert_close(score.score(NONE), -psnr(guess, images.pixels()).double())
    flat = Batch(torch.full_like(public.images[:40], 7), public.labels[:40])
    unfit = BlindGuessScore(images, flat, classes)
    assert (unfit.score(NONE) > score.score(NONE)).float().mean() > 0.5
