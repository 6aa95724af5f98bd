"""Opacus's settings, against Opacus and arithmetic by hand."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from opacus.accountants import RDPAccountant

from gradveil.errors import GradveilError
from gradveil.privacy import OpacusSettings, Run, gaussian_epsilon, read_opacus

CONFIGURATIONS = Path(__file__).parent / "configurations"


def test_full_batches_by_hand() -> None:
    """Noise 4 over 16 steps without sampling is √16/4 = 1 = μ: ε of the run is that of one release with noise 1."""
    figures = read_opacus(CONFIGURATIONS / "opacus.json", Run()).check().figures
    assert figures.epsilon_run == pytest.approx(gaussian_epsilon(1.0, 1e-5), rel=1e-9)
    assert figures.epsilon_run == pytest.approx(4.37718, rel=1e-5)
    assert figures.epsilon_release == gaussian_epsilon(4.0, 1e-5)


def test_a_run_costs_what_opacus_counts_for_the_same_history() -> None:
    accountant = RDPAccountant()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3 * 20):
            accountant.step(noise_multiplier=1.1, sample_rate=0.05)
        expected = accountant.get_epsilon(1e-6)
    release = OpacusSettings(1.1, 1.0, 0.05, epochs=1, delta=1e-6).release(Run(rounds=3))
    assert release.run.rounds == 60
    assert release.check().figures.epsilon_run == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epochs", "rate", "steps"), [(1, 0.1, 10), (3, 0.1, 30), (5, 0.03, 167), (1, 1.0, 1)])
def test_epochs_are_counted_in_steps(epochs: int, rate: float, steps: int) -> None:
    assert OpacusSettings(1.0, 1.0, rate, epochs=epochs).count_steps() == steps


def test_clips_of_layers_add_up_in_squares() -> None:
    assert OpacusSettings(2.0, (3.0, 4.0), 0.1, steps=1).release(Run()).deviation == pytest.approx(10.0)


def test_without_poisson_sampling_sampling_does_not_help() -> None:
    settings = OpacusSettings(1.0, 1.0, 0.01, steps=10, delta=1e-5, poisson_sampling=False)
    release = settings.release(Run())
    assert release.check().figures.epsilon_run == gaussian_epsilon(1.0, 1e-5, 10)
    assert any("Without Poisson sampling" in warning for warning in release.warnings)


def test_warnings_follow_the_settings() -> None:
    def count(**settings: Any) -> int:
        return len(OpacusSettings(1.0, 1.0, 0.1, steps=1, **settings).release(Run()).warnings)

    assert (count(), count(secure_mode=True), count(poisson_sampling=False)) == (2, 1, 3)
    quiet = OpacusSettings(0.0, 1.0, 0.1, steps=1).release(Run()).check()
    assert quiet.figures.epsilon_release is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "missing"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 0.1}, "either steps or epochs"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 0.1, "steps": 1, "epochs": 1}, "either"),
        ({"noise_multiplier": -1, "max_grad_norm": 1, "sample_rate": 0.1, "steps": 1}, "noise_multiplier is -1"),
        ({"noise_multiplier": 1, "max_grad_norm": 0, "sample_rate": 0.1, "steps": 1}, "max_grad_norm is 0"),
        ({"noise_multiplier": 1, "max_grad_norm": [1, "a"], "sample_rate": 0.1, "steps": 1}, "max_grad_norm is 'a'"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 2, "steps": 1}, "sample_rate is 2"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 0.1, "steps": 0}, "steps is 0"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 0.1, "steps": 1, "delta": 0}, "delta is 0"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sample_rate": 0.1, "steps": 1, "secure_mode": 1}, "true or"),
        ({"noise_multiplier": 1, "max_grad_norm": 1, "sampel_rate": 0.1, "steps": 1}, "did you mean 'sample_rate'"),
    ],
)
def test_nonsense_is_refused_in_one_line(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "opacus.json"
    path.write_text(json.dumps(settings))
    with pytest.raises(GradveilError, match=message) as refused:
        read_opacus(path, Run())
    assert "\n" not in str(refused.value)
