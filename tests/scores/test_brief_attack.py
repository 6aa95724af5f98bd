"""The brief attack as a score."""

import torch

from gradveil.attacks import GradientMatching
from gradveil.scores import BriefAttackScore
from tests.scores.inputs import NONE, SMOOTHED, make_inputs


def test_more_steps_gain_more() -> None:
    few = GradientMatching(steps=1, start="class-mean", signed=False, total_variation=0.0)
    many = GradientMatching(steps=60, start="class-mean")
    gained = [float(BriefAttackScore(make_inputs(), attack).score(NONE).mean()) for attack in (few, many)]
    assert gained[1] > gained[0] + 0.5


def test_the_loss_of_the_weights_counts() -> None:
    plain, smoothed = (BriefAttackScore(inputs).score(NONE) for inputs in (make_inputs(), make_inputs(SMOOTHED)))
    assert not torch.allclose(plain, smoothed, rtol=1e-3)
