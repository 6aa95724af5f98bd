"""NVFlare's privacy filters, as a job's config_fed_client.json lists them under `task_result_filters`.

Facts are those of nvflare 2.8, app_common/filters: svt_privacy.py, percentile_privacy.py, gaussian_privacy.py and
exclude_vars.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from scipy.optimize import minimize_scalar

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.privacy.check import PureRelease, format_epsilon
from gradveil.privacy.settings import (
    Run,
    read_table,
    require_count,
    require_not_negative,
    require_number,
    require_positive,
    require_share,
)
from gradveil.results import read_settings


@dataclass(frozen=True)
class SVTPrivacy:
    """Release a `fraction` of the weights: chosen by a noisy threshold, clipped to ±gamma, with Laplace noise."""

    fraction: float = 0.1
    epsilon: float = 0.1
    noise_var: float = 0.1
    gamma: float = 1e-5
    tau: float = 1e-6
    data_kinds: Any = None
    replace: bool = True
    epsilon_threshold: float | None = None
    epsilon_query: float | None = None
    epsilon_release: float | None = None

    def __post_init__(self) -> None:
        require_share("fraction", self.fraction)
        require_not_negative("tau", self.tau)
        for name in ("epsilon", "noise_var", "gamma", "epsilon_threshold", "epsilon_query", "epsilon_release"):
            value = getattr(self, name)
            if value is not None:
                require_positive(name, value)
        parts = (self.epsilon_threshold or 0) + (self.epsilon_query or 0)
        whole = None not in (self.epsilon_threshold, self.epsilon_query)
        if parts > self.epsilon * (1 + 1e-9) or (whole and not math.isclose(parts, self.epsilon, rel_tol=1e-5)):
            raise SettingsError(
                f"epsilon_threshold and epsilon_query come to {parts:g}: they are parts of epsilon, {self.epsilon:g}"
            )

    def count_released(self, weights: int) -> int:
        """Count the weights that are drawn for release out of `weights`."""
        return min(math.ceil(float(weights) * self.fraction), weights)

    def release_epsilon(self, weights: int) -> float:
        """Compute what the released values cost: each moves by up to 2·gamma, its noise has scale 2·gamma/noise_var."""
        return self.epsilon_release or self.count_released(weights) * self.noise_var

    def spend(self, weights: int) -> float:
        """Compute ε of one round as the filter counts it: the choice of the weights plus their values."""
        return self.epsilon + self.release_epsilon(weights)

    def list_warnings(self, weights: int, delta: float) -> Iterator[str]:
        released = self.count_released(weights)
        values = laplace_epsilon(self.release_epsilon(weights) / released, released, delta)
        query = self.epsilon_query or self.epsilon - (self.epsilon_threshold or 0)
        yield (
            f"epsilon = {self.epsilon:g} pays for choosing the weights only. The values of the {released:,} chosen "
            f"cost {format_epsilon(self.release_epsilon(weights))} more; set epsilon_release to limit that."
        )
        yield (
            f"These ε are for δ = 0. With δ = {delta:g} a round costs at most "
            f"ε = {format_epsilon(self.epsilon + values)} (Rényi composition of the Laplace noise)."
        )
        if self.fraction < 1:
            yield (
                "The filter may accept more weights than it releases and does not count them: the choice costs up to "
                f"ε = {format_epsilon(self.epsilon + query * (weights / released - 1))}."
            )
        old = self.epsilon * (1 + (2 * released) ** (2 / 3)) / 2
        yield f"Versions without epsilon_threshold choose with less noise: that costs ε = {format_epsilon(old)}."
        yield "Arrays without a dimension, such as counters, leave the client as they are."


@dataclass(frozen=True)
class PercentilePrivacy:
    """Release the weights above a percentile, clipped to ±gamma, without noise."""

    percentile: float = 10
    gamma: float = 0.01
    data_kinds: Any = None

    why_none = "adds no noise: it has no ε, whatever its percentile and gamma."

    def __post_init__(self) -> None:
        require_number("percentile", self.percentile, 0, 100)
        require_positive("gamma", self.gamma)


@dataclass(frozen=True)
class GaussianPrivacy:
    """Add noise of `sigma0` times a percentile of the update's own values."""

    sigma0: float = 0.1
    max_percentile: float = 95
    data_kinds: Any = None

    why_none = "does not clip, and takes the size of its noise from the update itself: it has no ε."

    def __post_init__(self) -> None:
        require_not_negative("sigma0", self.sigma0)
        require_number("max_percentile", self.max_percentile, 0, 100)


@dataclass(frozen=True)
class ExcludeVars:
    """Leave variables out."""

    exclude_vars: Any = None
    data_kinds: Any = None

    why_none = "adds no noise: what it leaves in has no ε."


Filter = SVTPrivacy | PercentilePrivacy | GaussianPrivacy | ExcludeVars
FILTERS: dict[str, type[Filter]] = {
    "SVTPrivacy": SVTPrivacy,
    "PercentilePrivacy": PercentilePrivacy,
    "GaussianPrivacy": GaussianPrivacy,
    "ExcludeVars": ExcludeVars,
}


def laplace_epsilon(epsilon: float, count: int, delta: float) -> float:
    """Compute ε at `delta` of `count` Laplace releases of `epsilon` each, by Rényi composition (Mironov, 2017)."""

    def bound(exponent: float) -> float:
        beyond = math.exp(exponent)  # the order less one
        order = 1 + beyond
        up = math.log(order / (2 * order - 1)) + beyond * epsilon
        down = math.log(beyond / (2 * order - 1)) - order * epsilon
        divergence = (max(up, down) + math.log1p(math.exp(-abs(up - down)))) / beyond
        return count * divergence + math.log(1 / delta) / beyond

    return min(count * epsilon, float(minimize_scalar(bound, bounds=(-12, 8), method="bounded").fun))


def read_nvflare(path: Path, run: Run, weights: int | None = None) -> PureRelease:
    """Read the filters on a client's results; `weights` is the number of values that the model sends."""
    if weights is not None:
        require_count("weights", weights)
    chain = list(list_filters(path))
    if not chain:
        raise SettingsError(f"{path} has no filter under task_result_filters: results leave the client as they are")
    name = f"NVFlare {', '.join(entry.name for entry in chain)}"
    notes = [entry.note for entry in chain if entry.note]
    # What follows a private release costs nothing.
    private = next((entry.settings for entry in chain if isinstance(entry.settings, SVTPrivacy)), None)
    if private is None:
        return PureRelease(name, None, run, tuple(notes))
    if weights is None:
        return PureRelease(name, None, run, (explain_missing(private), *notes))
    return PureRelease(name, private.spend(weights), run, (*private.list_warnings(weights, run.resolve()[2]), *notes))


def explain_missing(private: SVTPrivacy) -> str:
    example = 7_033_282
    return (
        f"ε depends on the number of values that the model sends: pass --weights N. With N = {example:,} it is "
        f"{format_epsilon(private.spend(example))} in one round."
    )


@dataclass(frozen=True)
class ChainEntry:
    """One filter of the chain, and the tasks whose results pass it; `settings` is None for a filter unknown here."""

    name: str
    tasks: tuple[str, ...]
    settings: Filter | None

    @property
    def note(self) -> str:
        """What a reader has to know of it; empty if nothing."""
        if self.settings is None:
            return f"{self.name} is not known here: what it does is not counted."
        if not isinstance(self.settings, SVTPrivacy):
            return f"{self.name} {self.settings.why_none}"
        if "*" in self.tasks:
            return ""
        return f"Only results of {', '.join(self.tasks) or 'no task'} pass {self.name}; others leave without it."


def list_filters(path: Path) -> Iterator[ChainEntry]:
    """List the filters in their order."""
    for group in require_list(read_table(path).get("task_result_filters", [])):
        check_keys(group, {"tasks", "filters"})
        tasks = tuple(str(task) for task in require_list(group.get("tasks", [])))
        for entry in require_list(group.get("filters", [])):
            check_keys(entry, {"id", "name", "path", "args"})
            name = str(entry.get("path", entry.get("name", ""))).rpartition(".")[2]
            yield ChainEntry(name, tasks, build_filter(name, entry.get("args", {})))


def build_filter(name: str, arguments: Any) -> Filter | None:
    if name not in FILTERS:
        return None
    check_keys(arguments, {entry.name for entry in fields(FILTERS[name])}, f"argument of {name}")
    return read_settings(FILTERS[name], arguments, name)


def require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SettingsError(f"task_result_filters has {value!r} where it needs a list")
    return value


def check_keys(entry: Any, allowed: set[str], kind: str = "key of task_result_filters") -> None:
    if not isinstance(entry, dict):
        raise SettingsError(f"task_result_filters has {entry!r} where it needs names with values")
    unknown = next((key for key in entry if key not in allowed), None)
    if unknown is not None:
        raise UnknownNameError(kind, unknown, allowed)
