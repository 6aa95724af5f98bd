"""ε of Gaussian noise, against the textbook's formula, Opacus's accountants and first principles."""

import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant
from scipy.special import ndtri

from gradveil.privacy import classic_deviation, gaussian_delta, gaussian_epsilon, run_epsilon, sampled_epsilon

NOISES = st.floats(1e-3, 1e3)
DELTAS = st.floats(1e-12, 0.1)


def textbook_delta(noise: float, epsilon: float) -> float:
    """Compute δ(ε) = Φ(1/2σ − εσ) − e^ε·Φ(−1/2σ − εσ) as Balle & Wang print it."""

    def phi(value: float) -> float:
        return math.erfc(-value / math.sqrt(2)) / 2

    half, rest = 1 / (2 * noise), epsilon * noise
    return phi(half - rest) - math.exp(epsilon) * phi(-half - rest)


@pytest.mark.parametrize("noise", [0.3, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-2])
def test_epsilon_solves_the_textbook_equation(noise: float, delta: float) -> None:
    epsilon = gaussian_epsilon(noise, delta)
    if epsilon > 0:
        assert textbook_delta(noise, epsilon) == pytest.approx(delta, rel=1e-6)
    else:
        assert textbook_delta(noise, 0.0) <= delta
    assert gaussian_delta(noise, epsilon) <= delta * (1 + 1e-9)


@given(NOISES, DELTAS, st.floats(1.01, 10))
def test_epsilon_falls_with_more_noise(noise: float, delta: float, factor: float) -> None:
    less, more = gaussian_epsilon(noise * factor, delta), gaussian_epsilon(noise, delta)
    assert less < more or less == more == 0


@given(NOISES, DELTAS, st.integers(1, 1000))
def test_epsilon_rises_with_rounds_and_never_faster_than_it_adds_up(noise: float, delta: float, rounds: int) -> None:
    one, some, more = (gaussian_epsilon(noise, delta, count) for count in (1, rounds, rounds + 1))
    assert one <= some <= more
    assert more == pytest.approx(gaussian_epsilon(noise / math.sqrt(rounds + 1), delta), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [
        (4.0, 0.926341504),
        (1.0, 4.377178096),
        (0.5, 9.997256146),
        (0.1, 91.81728962),
        (4.84480526260539e-5, 213106544.7),
    ],
)
def test_epsilon_equals_that_of_the_textbook_equation_solved_with_sixty_digits(noise: float, epsilon: float) -> None:
    assert gaussian_epsilon(noise, 1e-5) == pytest.approx(epsilon, rel=1e-9)


def test_huge_epsilon_neither_overflows_nor_loses_digits() -> None:
    """For small noise ε = μ²/2 + 4.2649·μ up to a term of order 1, with μ = 1/noise and Φ(−4.2649) = 1e-5."""
    for noise in (1e-3, 1e-6, 1e-30):
        reach = 1 / noise
        assert gaussian_epsilon(noise, 1e-5) == pytest.approx(reach**2 / 2 + 4.26489 * reach, rel=1e-5)


@given(st.floats(-60, 60), st.floats(-300, -0.01))
def test_every_noise_and_every_delta_have_an_epsilon(noise: float, delta: float) -> None:
    """ε lies between 0 and μ²/2 − μ·Φ⁻¹(δ), because δ(a) < Φ(a)."""
    reach = 10.0**-noise
    epsilon = gaussian_epsilon(10.0**noise, 10.0**delta)
    assert 0 <= epsilon <= max(0.0, reach * (reach / 2 - float(ndtri(10.0**delta)))) * (1 + 1e-6)


def test_the_classic_noise_keeps_its_promise_below_one_and_breaks_it_at_ten() -> None:
    assert gaussian_epsilon(classic_deviation(1.0, 0.9, 1e-5), 1e-5) < 0.9
    assert gaussian_epsilon(classic_deviation(1.0, 10.0, 1e-5), 1e-5) > 10


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.1, 0.01, 1000), (1.0, 0.1, 100), (0.5, 0.1, 100)])
def test_a_sampled_run_costs_what_opacus_counts(noise: float, rate: float, steps: int) -> None:
    rdp, prv = RDPAccountant(), PRVAccountant()
    for accountant in (rdp, prv):
        accountant.history.append((noise, rate, steps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, tight = rdp.get_epsilon(1e-5), float(prv.get_epsilon(1e-5))
    assert run_epsilon(noise, rate, steps, 1e-5) == sampled_epsilon(noise, rate, steps, 1e-5) == expected
    assert tight <= expected <= 1.25 * tight


@pytest.mark.parametrize(("noise", "rounds"), [(1.0, 1), (2.0, 10), (5.0, 100)])
def test_without_sampling_the_exact_epsilon_lies_just_below_that_of_opacus(noise: float, rounds: int) -> None:
    exact = run_epsilon(noise, 1.0, rounds, 1e-5)
    prv = PRVAccountant()
    prv.history.append((noise, 1.0, rounds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert exact <= float(prv.get_epsilon(1e-5)) <= exact + 0.03
    assert exact < sampled_epsilon(noise, 1.0, rounds, 1e-5) < 1.2 * exact


def test_sampling_never_raises_epsilon() -> None:
    for noise in (1e-4, 0.1, 1.0, 50.0):
        assert run_epsilon(noise, 0.01, 3, 1e-5) <= run_epsilon(noise, 1.0, 3, 1e-5)


def test_no_step_costs_nothing() -> None:
    assert sampled_epsilon(1.0, 0.1, 0, 1e-5) == 0
