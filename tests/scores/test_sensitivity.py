"""Sensitivity: how far the gradient turns around an image."""

import torch

from gradveil.scores import ScoreInputs, SensitivityScore
from tests.scores.inputs import NONE, SMOOTHED, make_inputs


def make(inputs: ScoreInputs, radius: float = 0.05) -> SensitivityScore:
    return SensitivityScore(
        inputs.task.model, inputs.images.images, inputs.images.labels, radius, loss=inputs.task.loss
    )


def test_a_gradient_that_turns_more_scores_higher() -> None:
    inputs = make_inputs()
    assert (make(inputs, 0.2).score(NONE) > make(inputs, 0.01).score(NONE)).all()


def test_the_loss_of_the_weights_counts() -> None:
    plain, smoothed = (make(inputs).score(NONE) for inputs in (make_inputs(), make_inputs(SMOOTHED)))
    assert not torch.allclose(plain, smoothed, rtol=1e-3)
