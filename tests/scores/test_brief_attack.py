"""The brief attack as a score."""

import torch

from gradveil.attacks import ClassMean, Descent, GradientMatching, Priors, unsigned
from gradveil.scores import BriefAttackScore
from tests.scores.inputs import NONE, SMOOTHED, make_inputs


def test_more_steps_gain_more() -> None:
    few = GradientMatching(descent=Descent(steps=1, sign=unsigned), priors=Priors(0.0), start=ClassMean())
    many = GradientMatching(descent=Descent(steps=60), start=ClassMean())
    gained = [float(BriefAttackScore(make_inputs(), attack).score(NONE).mean()) for attack in (few, many)]
    assert gained[1] > gained[0] + 0.5


def test_the_loss_of_the_weights_counts() -> None:
    plain, smoothed = (BriefAttackScore(inputs).score(NONE) for inputs in (make_inputs(), make_inputs(SMOOTHED)))
    assert not torch.allclose(plain, smoothed, rtol=1e-3)
