"""The outcome of a check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.privacy import Figures, GaussianRelease, PrivacyCheck, PureRelease, Run, gaussian_epsilon, success_bound
from gradveil.results import to_json


def check(noise: float, run: Run) -> PrivacyCheck:
    return GaussianRelease("test", "client", noise, noise / 2, run).check()


def test_the_figures_are_those_of_the_noise() -> None:
    outcome = check(2.0, Run(rounds=4, delta=1e-6))
    assert outcome.figures == Figures(
        gaussian_epsilon(2.0, 1e-6), gaussian_epsilon(1.0, 1e-6), success_bound(2.0), success_bound(1.0)
    )
    assert outcome.replacing == Figures(
        gaussian_epsilon(1.0, 1e-6), gaussian_epsilon(0.5, 1e-6), success_bound(1.0), success_bound(0.5)
    )
    assert outcome.warnings == ()


@given(st.floats(0.05, 50), st.integers(1, 200), st.floats(0.01, 1))
def test_more_rounds_and_replacing_never_cost_less(noise: float, rounds: int, sampling: float) -> None:
    short = check(noise, Run(rounds, sampling, 1e-5))
    long = check(noise, Run(rounds + 1, sampling, 1e-5))
    for outcome in (short, long):
        assert outcome.figures.epsilon_run is not None
        assert outcome.replacing is not None
        assert outcome.replacing.epsilon_run is not None
        assert outcome.figures.epsilon_run <= outcome.replacing.epsilon_run
        assert outcome.figures.reconstruction_bound <= outcome.figures.reconstruction_bound_run
    assert short.figures.epsilon_run is not None
    assert long.figures.epsilon_run is not None
    assert short.figures.epsilon_run <= long.figures.epsilon_run
    assert short.figures.epsilon_release == long.figures.epsilon_release


def test_no_noise_is_no_guarantee() -> None:
    outcome = check(0.0, Run())
    assert outcome.figures == outcome.replacing == Figures(None, None, 1.0, 1.0)
    assert outcome.warnings == ("No noise is added: there is no ε, and nothing limits a reconstruction.",)


def test_what_nobody_stated_is_said() -> None:
    unstated = check(1.0, Run()).warnings
    assert ["δ is not stated" in unstated[0], "rounds is not stated" in unstated[1]] == [True, True]
    (sampled,) = check(1.0, Run(10, 0.1, 1e-5)).warnings
    assert "Without it ε of the run is 17.9." in sampled
    assert gaussian_epsilon(1.0, 1e-5, 10) == pytest.approx(17.9, abs=0.05)


def test_a_pure_epsilon_adds_up() -> None:
    outcome = PureRelease("test", 0.5, Run(rounds=4)).check()
    assert outcome.figures.epsilon_release == 0.5
    assert outcome.figures.epsilon_run == 2.0
    assert outcome.figures.reconstruction_bound < outcome.figures.reconstruction_bound_run
    assert outcome.delta == 0
    assert PureRelease("test", None, Run()).check().figures == Figures()


def test_the_record_has_the_figures_at_its_top_and_is_json() -> None:
    record = check(1.0, Run(2, 0.5, 1e-5)).to_record()
    assert {"epsilon_release", "epsilon_run", "reconstruction_bound", "warnings"} <= set(record)
    assert "figures" not in record
    assert isinstance(record["warnings"], list)
    to_json(record)
