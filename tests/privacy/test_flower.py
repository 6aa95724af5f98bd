"""Flower's settings, against arithmetic by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gradveil.errors import GradveilError
from gradveil.privacy import AdaptiveClipping, FixedClipping, LocalDpMod, Run, gaussian_epsilon, read_flower

CONFIGURATIONS = Path(__file__).parent / "configurations"
ONCE = Run(rounds=1, delta=1e-5)


def write(folder: Path, settings: dict[str, Any]) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps(settings))
    return path


def test_local_noise_for_a_sensitivity_that_nobody_checked_by_hand() -> None:
    """Deviation 1e-4·√(2·ln 125000)/10 = 1e-4·4.84481/10 = 4.84481e-5 on an update of norm 1.

    μ = 1/4.84481e-5 = 20640.66, and ε = μ²/2 + 4.26489·μ = 213,018,516 + 88,030 = 2.13107e8.
    """
    release = LocalDpMod(1.0, 1e-4, 10.0, 1e-5).release(ONCE)
    assert release.deviation == pytest.approx(4.84481e-5, rel=1e-5)
    outcome = release.check()
    assert outcome.figures.epsilon_release == pytest.approx(20640.66**2 / 2 + 4.26489 * 20640.66, rel=1e-5)
    assert outcome.figures.epsilon_release == pytest.approx(2.13107e8, rel=1e-5)
    assert outcome.replacing is not None
    assert outcome.replacing.epsilon_release == pytest.approx(41281.33**2 / 2 + 4.26489 * 41281.33, rel=1e-5)
    assert outcome.epsilon_claimed == 10
    assert "20,000 times the noise" in outcome.warnings[0]


def test_local_noise_with_a_true_sensitivity_by_hand() -> None:
    """Deviation 2·4.84481/1 = 9.68961. Removing moves by 1: noise 9.68961; replacing by 2: noise 4.84481.

    At ε = 0.75098: Φ(0.10320 − 3.63835) − e^0.75098·Φ(−0.10320 − 3.63835) = 2.0377e-4 − 2.11907·9.1439e-5 = 1.0e-5.
    """
    outcome = LocalDpMod(1.0, 2.0, 1.0, 1e-5).release(ONCE).check()
    assert outcome.deviation == pytest.approx(9.68961, rel=1e-6)
    assert outcome.figures.epsilon_release == pytest.approx(0.352572, rel=1e-5)
    assert outcome.replacing is not None
    assert outcome.replacing.epsilon_release == pytest.approx(0.750977, rel=1e-5)
    assert not any("sensitivity" in warning for warning in outcome.warnings)


def test_the_formula_breaks_its_own_promise_for_a_large_epsilon() -> None:
    warnings = LocalDpMod(1.0, 2.0, 10.0, 1e-5).release(ONCE).warnings
    assert any("proven for ε < 1" in warning and "ε = 10.4" in warning for warning in warnings)
    assert not any("proven" in warning for warning in LocalDpMod(1.0, 2.0, 0.9, 1e-5).release(ONCE).warnings)


def test_rounds_are_counted_though_the_mod_does_not() -> None:
    release = LocalDpMod(1.0, 2.0, 1.0, 1e-5).release(Run(rounds=100))
    assert any("does not count rounds" in warning for warning in release.warnings)
    assert release.check().figures.epsilon_run == gaussian_epsilon(release.noise, 1e-5, 100)


def test_noise_on_the_average_by_hand() -> None:
    """Noise of 1·0.5/10 on an average that one of ten clients moves by 0.5/10: a multiplier of 1; 1/2 if replaced."""
    release = FixedClipping(1.0, 0.5, 10).release(ONCE, "server")
    assert release.deviation == pytest.approx(0.05)
    assert (release.noise, release.noise_replacing) == (1.0, 0.5)
    assert release.check().figures.epsilon_release == pytest.approx(4.37718, rel=1e-5)
    assert "against the server there is no ε" in release.warnings[0]


def test_adaptive_clipping_by_hand() -> None:
    """Count noise 20/20 = 1; update noise (1 − 1/4)^−½ = 1.154701, times e^(−0.2·0.5) = 0.904837: 1.044816.

    Removing a client: μ² = 1/1.044816² + 1/1² = 1.916053. Replacing it: 4·0.916053 + 1 = 4.664211.
    """
    release = AdaptiveClipping(1.0, 20).release(ONCE, "client")
    assert release.noise == pytest.approx(1.916053**-0.5, rel=1e-6)
    assert release.noise_replacing == pytest.approx(4.664211**-0.5, rel=1e-6)
    assert release.deviation == pytest.approx(1.044816 * 0.1 / 20, rel=1e-6)
    assert "9.5% smaller" in release.warnings[0]
    assert AdaptiveClipping(0.0, 20).release(ONCE, "client").check().figures.epsilon_run is None


def test_whoever_clips_on_the_client_is_told_that_nothing_checks_it() -> None:
    def warned(side: Any) -> bool:
        return any("nothing checks" in text for text in FixedClipping(1.0, 1.0, 5).release(ONCE, side).warnings)

    assert [warned(side) for side in ("server", "client", "unknown")] == [False, True, True]


def test_an_app_is_read_with_its_rounds_and_its_sampling() -> None:
    local = read_flower(CONFIGURATIONS / "local.toml", Run())
    assert (local.mechanism, local.run) == ("Flower LocalDpMod", Run(3, None, 1e-5))
    server = read_flower(CONFIGURATIONS / "server.toml", Run())
    assert (server.mechanism, server.run) == ("Flower fixed clipping on the server", Run(100, 0.1, 1e-5))
    assert read_flower(CONFIGURATIONS / "server.toml", Run(7, 0.5, 1e-6)).run == Run(7, 0.5, 1e-6)
    assert read_flower(CONFIGURATIONS / "adaptive.json", Run()).mechanism == "Flower adaptive clipping on the client"


@pytest.mark.parametrize(
    ("settings", "mechanism"),
    [
        ({"dp-clipping-norm": 1, "dp-sensitivity": 2, "dp-epsilon": 1, "dp-delta": 1e-5}, "Flower LocalDpMod"),
        ({"noise_multiplier": 1, "clipping_norm": 1, "num_sampled_clients": 3}, "Flower fixed clipping"),
        ({"noise_multiplier": 0.1, "num_sampled_clients": 3}, "Flower adaptive clipping"),
    ],
)
def test_keys_tell_the_mechanism(settings: dict[str, Any], mechanism: str, tmp_path: Path) -> None:
    assert read_flower(write(tmp_path, settings), Run()).mechanism == mechanism


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "has no"),
        ({"tool": {"flwr": 3}}, "has no"),
        ({"clipping_norm": 1}, "missing"),
        ({"clipping_norm": 1, "sensitvity": 2, "epsilon": 1, "delta": 1e-5}, "did you mean 'sensitivity'"),
        (
            {"clipping_norm": 1, "sensitivity": 2, "epsilon": 1, "delta": 1e-5, "model": "own"},
            "table of their own, 'dp'",
        ),
        ({"clipping_norm": 0, "sensitivity": 2, "epsilon": 1, "delta": 1e-5}, "clipping_norm is 0"),
        ({"clipping_norm": 1, "sensitivity": -1, "epsilon": 1, "delta": 1e-5}, "sensitivity is -1"),
        ({"clipping_norm": 1, "sensitivity": "2", "epsilon": 1, "delta": 1e-5}, "sensitivity is '2'"),
        ({"clipping_norm": 1, "sensitivity": 2, "epsilon": 0, "delta": 1e-5}, "epsilon is 0"),
        ({"mechanism": "LocalDPMod"}, "did you mean 'LocalDpMod'"),
        ({"mechanism": ["LocalDpMod"]}, "unknown Flower mechanism"),
        ({"noise_multiplier": 1, "clipping_norm": 1, "num_sampled_clients": 2.5}, "num_sampled_clients is 2.5"),
        ({"noise_multiplier": 1, "num_sampled_clients": 10}, "Flower takes less than"),
        ({"noise_multiplier": 0.5, "num_sampled_clients": 10, "clip_norm_lr": 1e9}, "clip_norm_lr"),
        ({"noise_multiplier": 1, "clipping_norm": 1, "num_sampled_clients": 2, "delta": 2}, "delta is 2"),
        ({"noise_multiplier": 1, "clipping_norm": 1, "num_sampled_clients": 2, "fraction_fit": 0}, "sampling is 0"),
        ({"dp": {"noise_multiplier": True, "clipping_norm": 1, "num_sampled_clients": 2}}, "noise_multiplier is True"),
    ],
)
def test_nonsense_is_refused_in_one_line(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(GradveilError, match=message) as refused:
        read_flower(write(tmp_path, settings), Run())
    assert "\n" not in str(refused.value)


def test_the_extremes_stay_finite() -> None:
    for clip, sensitivity, epsilon in ((1e30, 1e-30, 1e30), (1e-30, 1e30, 1e-30)):
        figures = LocalDpMod(clip, sensitivity, epsilon, 1e-300).release(Run(10**12, 1e-12)).check().figures
        assert figures.epsilon_run is not None
        assert math.isfinite(figures.epsilon_run)
