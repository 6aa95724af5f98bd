"""NVFlare's filters, against arithmetic by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from gradveil.errors import GradveilError
from gradveil.privacy import Run, SVTPrivacy, read_nvflare
from gradveil.privacy.nvflare import laplace_epsilon

CONFIGURATIONS = Path(__file__).parent / "configurations"
# DenseNet-121 for one channel and two classes: weights, biases and the batch norms' means and variances.
DENSENET = 7_033_282


def write(folder: Path, *filters: dict[str, Any], tasks: Any = ("train",)) -> Path:
    path = folder / "config_fed_client.json"
    path.write_text(json.dumps({"task_result_filters": [{"tasks": tasks, "filters": filters}]}))
    return path


def entry(name: str, **arguments: Any) -> dict[str, Any]:
    return {"path": f"nvflare.app_common.filters.{name}", "args": arguments}


def test_the_defaults_by_hand() -> None:
    """A tenth of 7,033,282 is 703,329, rounded up; each value costs 0.1, the choice 0.1: 70,332.9 + 0.1 = 70,333."""
    assert SVTPrivacy().count_released(DENSENET) == 703_329
    release = read_nvflare(CONFIGURATIONS / "config_fed_client.json", Run(rounds=3), DENSENET)
    figures = release.check().figures
    assert figures.epsilon_release == pytest.approx(70_333.0, rel=1e-12)
    assert figures.epsilon_run == pytest.approx(210_999.0, rel=1e-12)
    assert figures.reconstruction_bound == 1


def test_a_stated_release_budget_is_all_that_the_values_cost() -> None:
    assert SVTPrivacy(epsilon=0.5, epsilon_release=2.0).spend(DENSENET) == 2.5
    assert SVTPrivacy(fraction=1.0, noise_var=0.2).spend(10) == pytest.approx(0.1 + 10 * 0.2)


def test_the_release_really_costs_what_is_counted() -> None:
    """The log ratio of two Laplace densities of scale 2γ/v, moved by 2γ, is v at most, and v beyond the centres."""
    gamma, noise_var = 1e-5, 0.1
    scale = 2 * gamma / noise_var

    def log_density(value: float, centre: float) -> float:
        return -abs(value - centre) / scale

    ratios = [log_density(x * gamma, gamma) - log_density(x * gamma, -gamma) for x in (-50, -1, 0, 1, 50)]
    assert max(ratios) == pytest.approx(noise_var)
    assert ratios[2] == pytest.approx(0)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 1000), (0.1, 703_329), (1.0, 100)])
def test_laplace_at_a_delta_costs_less_than_the_sum_and_more_than_the_mean_loss(epsilon: float, count: int) -> None:
    """The mean privacy loss of one Laplace release is ε − 1 + e^−ε; no ε below count times that holds at δ < 1/2."""
    mean = count * (epsilon - 1 + math.exp(-epsilon))
    assert mean < laplace_epsilon(epsilon, count, 1e-5) < count * epsilon
    assert laplace_epsilon(epsilon, count, 1e-9) > laplace_epsilon(epsilon, count, 1e-5)
    assert laplace_epsilon(1e-3, 1, 1e-5) == pytest.approx(1e-3)


def test_without_the_number_of_weights_there_is_no_epsilon_but_a_word_why() -> None:
    release = read_nvflare(CONFIGURATIONS / "config_fed_client.json", Run())
    assert release.epsilon is None
    assert "pass --weights N" in release.warnings[0]
    assert "70,333" in release.warnings[0]


@pytest.mark.parametrize("name", ["PercentilePrivacy", "GaussianPrivacy", "ExcludeVars"])
def test_filters_without_a_guarantee_have_no_epsilon(name: str, tmp_path: Path) -> None:
    release = read_nvflare(write(tmp_path, entry(name)), Run(), 1000)
    assert release.epsilon is None
    assert release.check().figures.reconstruction_bound == 1
    assert any(warning.startswith(name) and "no ε" in warning for warning in release.warnings)


def test_a_chain_is_as_private_as_its_svt_filter(tmp_path: Path) -> None:
    path = write(tmp_path, entry("PercentilePrivacy", percentile=5), entry("SVTPrivacy"), {"name": "OwnFilter"})
    release = read_nvflare(path, Run(), 1000)
    assert release.mechanism == "NVFlare PercentilePrivacy, SVTPrivacy, OwnFilter"
    assert release.epsilon == SVTPrivacy().spend(1000)
    assert any("OwnFilter is not known here" in warning for warning in release.warnings)


def test_other_tasks_are_named(tmp_path: Path) -> None:
    def warned(tasks: list[str]) -> bool:
        release = read_nvflare(write(tmp_path, entry("SVTPrivacy"), tasks=tasks), Run(), 1000)
        return any("Only results of" in warning for warning in release.warnings)

    assert [warned(["train"]), warned(["*"])] == [True, False]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([], "has no filter"),
        ([entry("SVTPrivacy", epsilonn=1)], "did you mean 'epsilon'"),
        ([entry("SVTPrivacy", epsilon="{epsilon}")], "epsilon is '{epsilon}'"),
        ([entry("SVTPrivacy", fraction=0)], "fraction is 0"),
        ([entry("SVTPrivacy", noise_var=-1)], "noise_var is -1"),
        ([entry("SVTPrivacy", epsilon_threshold=0.2)], "parts of epsilon"),
        ([entry("SVTPrivacy", epsilon_threshold=0.01, epsilon_query=0.02)], "parts of epsilon"),
        ([entry("PercentilePrivacy", percentile=101)], "percentile is 101"),
        ([entry("GaussianPrivacy", sigma0=-1)], "sigma0 is -1"),
        ([{"path": "x.SVTPrivacy", "arg": {}}], "did you mean 'args'"),
        ([{"path": "x.SVTPrivacy", "args": [1]}], "needs names with values"),
        ([3], "needs names with values"),
    ],
)
def test_nonsense_is_refused_in_one_line(filters: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(GradveilError, match=message) as refused:
        read_nvflare(write(tmp_path, *filters), Run(), 1000)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_list_of_filters_and_no_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GradveilError, match="where it needs a list"):
        read_nvflare(write(tmp_path, tasks="train"), Run())
    with pytest.raises(GradveilError, match="weights is 0"):
        read_nvflare(write(tmp_path, entry("SVTPrivacy")), Run(), 0)
