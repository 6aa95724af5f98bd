"""The reconstruction bounds, against the best test between two distributions."""

import math

import pytest
import torch

from gradveil.privacy import pure_success_bound, success_bound
from gradveil.rng import generator


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
def test_the_bound_is_reached_by_the_best_test_and_by_no_more(noise: float) -> None:
    """Tell N(0, σ²) from N(1, σ²) by a threshold that errs with the probability of chance (Neyman and Pearson)."""
    draws = torch.randn(200_000, generator=generator(0), dtype=torch.float64) * noise
    threshold = float(draws.quantile(0.95))
    power = float((draws + 1 > threshold).double().mean())
    assert success_bound(noise, 0.05) == pytest.approx(power, abs=0.01)


def test_the_bound_lies_between_chance_and_certainty() -> None:
    bounds = [success_bound(noise) for noise in (0.0, 0.1, 1.0, 10.0, 1e6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == 1
    assert bounds[-1] == pytest.approx(0.01, rel=1e-3)
    assert [success_bound(1.0, chance) for chance in (0.0, 1.0)] == [0, 1]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_the_pure_bound_is_reached_by_randomised_response(epsilon: float) -> None:
    """A bit kept with probability p = e^ε/(1 + e^ε): guess "1" whenever it is seen, and flip a coin for the rest."""
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    for chance in (0.01, 0.3, 0.9):
        flipped = 1 - kept
        power = chance / flipped * kept if chance <= flipped else kept + (chance - flipped) / kept * flipped
        assert pure_success_bound(epsilon, chance) == pytest.approx(power, rel=1e-9)
    assert pure_success_bound(70_333.0) == 1
