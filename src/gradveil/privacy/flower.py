"""Flower's differential privacy: `LocalDpMod` and the four strategies that clip and add noise to the average.

Facts are those of flwr 1.41: clientapp/mod/localdp_mod.py, serverapp/strategy/dp_fixed_clipping.py and
dp_adaptive_clipping.py, supercore/differential_privacy.py.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gradveil.errors import SettingsError, UnknownNameError
from gradveil.privacy.check import GaussianRelease, format_epsilon
from gradveil.privacy.gaussian import classic_deviation, gaussian_epsilon
from gradveil.privacy.settings import (
    Run,
    read_table,
    require_count,
    require_delta,
    require_not_negative,
    require_number,
    require_positive,
)
from gradveil.results import read_settings

Side = Literal["server", "client", "unknown"]

UNNOISED_METRICS = "Metrics in the reply (number of examples, loss) leave the client without noise."
SHARED_GENERATOR = "The noise comes from numpy's global generator: whoever knows its seed subtracts the noise."


@dataclass(frozen=True)
class LocalDpMod:
    """The client clips its update to `clipping_norm` and adds noise for the `sensitivity` that it is told."""

    clipping_norm: float
    sensitivity: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_positive("clipping_norm", self.clipping_norm)
        require_not_negative("sensitivity", self.sensitivity)
        require_positive("epsilon", self.epsilon)
        require_delta(self.delta)

    def release(self, run: Run) -> GaussianRelease:
        """Describe one release; removing a client moves a clipped update by C, replacing its data by up to 2·C."""
        deviation = classic_deviation(self.sensitivity, self.epsilon, self.delta)
        return GaussianRelease(
            "Flower LocalDpMod",
            "client",
            deviation / self.clipping_norm,
            deviation / (2 * self.clipping_norm),
            run.complete(delta=self.delta),
            self.epsilon,
            deviation,
            tuple(self.list_warnings(run.rounds)),
        )

    def list_warnings(self, rounds: int | None) -> Iterator[str]:
        clip = self.clipping_norm
        if 0 < self.sensitivity < 2 * clip:
            yield (
                f"sensitivity = {self.sensitivity:g} is too small; nothing checks it. An update clipped to {clip:g} "
                f"moves by up to {clip:g} if the client is removed, by up to {2 * clip:g} if its data are replaced. "
                f"Set sensitivity = {2 * clip:g}, which is {2 * clip / self.sensitivity:,.6g} times the noise."
            )
        if self.sensitivity:
            kept = gaussian_epsilon(classic_deviation(1.0, self.epsilon, self.delta), self.delta)
            if kept > self.epsilon:
                yield (
                    f"The mod's formula is proven for ε < 1. For ε = {self.epsilon:g} its noise is too small even for "
                    f"the stated sensitivity: ε = {format_epsilon(kept)}."
                )
        if rounds is not None and rounds > 1:
            yield f"The mod does not count rounds: its ε = {self.epsilon:g} is meant for one of the {rounds:,}."
        yield UNNOISED_METRICS
        yield SHARED_GENERATOR


@dataclass(frozen=True)
class FixedClipping:
    """The server averages clipped updates and adds noise of deviation noise_multiplier·clip / clients."""

    noise_multiplier: float
    clipping_norm: float
    num_sampled_clients: int

    def __post_init__(self) -> None:
        require_not_negative("noise_multiplier", self.noise_multiplier)
        require_positive("clipping_norm", self.clipping_norm)
        require_count("num_sampled_clients", self.num_sampled_clients)

    def release(self, run: Run, side: Side) -> GaussianRelease:
        """Describe one average, every client with the same weight."""
        return GaussianRelease(
            name_strategy("fixed", side),
            "client",
            self.noise_multiplier,
            self.noise_multiplier / 2,
            run,
            deviation=self.noise_multiplier * self.clipping_norm / self.num_sampled_clients,
            warnings=tuple(list_central_warnings(self.num_sampled_clients, side)),
        )


@dataclass(frozen=True)
class AdaptiveClipping:
    """As `FixedClipping`, with a clip that follows a quantile of the updates' norms (Andrew et al., 2021)."""

    noise_multiplier: float
    num_sampled_clients: int
    initial_clipping_norm: float = 0.1
    target_clipped_quantile: float = 0.5
    clip_norm_lr: float = 0.2
    clipped_count_stddev: float | None = None

    def __post_init__(self) -> None:
        require_not_negative("noise_multiplier", self.noise_multiplier)
        require_count("num_sampled_clients", self.num_sampled_clients)
        require_positive("initial_clipping_norm", self.initial_clipping_norm)
        require_number("target_clipped_quantile", self.target_clipped_quantile, 0, 1)
        require_number("clip_norm_lr", self.clip_norm_lr, 1e-30, 100)
        if self.clipped_count_stddev is not None:
            require_not_negative("clipped_count_stddev", self.clipped_count_stddev)
        if self.noise_multiplier > 2 * self.count_deviation * (1 - 1e-9):
            raise SettingsError(
                f"noise_multiplier is {self.noise_multiplier:g}: Flower takes less than 2·clipped_count_stddev = "
                f"{2 * self.count_deviation:g}; raise clipped_count_stddev or num_sampled_clients"
            )

    @property
    def count_deviation(self) -> float:
        """The noise on the number of clipped clients."""
        return self.num_sampled_clients / 20 if self.clipped_count_stddev is None else self.clipped_count_stddev

    @property
    def shrinkage(self) -> float:
        """What is left of the clip when the noise is drawn, after a round that clipped every client."""
        return math.exp(-self.clip_norm_lr * (1 - self.target_clipped_quantile))

    def release(self, run: Run, side: Side) -> GaussianRelease:
        """Describe one average and one count; both tell of a client, and their μ = 1/noise add up in squares."""
        warnings = list(list_central_warnings(self.num_sampled_clients, side))
        if self.noise_multiplier == 0:
            return GaussianRelease(name_strategy("adaptive", side), "client", 0.0, 0.0, run, warnings=tuple(warnings))
        update_noise = (self.noise_multiplier**-2 - (2 * self.count_deviation) ** -2) ** -0.5
        least = update_noise * self.shrinkage
        removing, replacing = (1 / math.hypot(moved / least, 1 / self.count_deviation) for moved in (1, 2))
        warnings.insert(
            0,
            "Flower updates the clip before it draws the noise: in a round that clips every client the noise is "
            f"{1 - self.shrinkage:.1%} smaller than noise_multiplier says. The figures are for such a round. A client "
            "also moves the count of clipped clients by 1, where the formula supposes 1/2.",
        )
        return GaussianRelease(
            name_strategy("adaptive", side),
            "client",
            removing,
            replacing,
            run,
            deviation=least * self.initial_clipping_norm / self.num_sampled_clients,
            warnings=tuple(warnings),
        )


Mechanism = LocalDpMod | FixedClipping | AdaptiveClipping
CLASSES: dict[str, tuple[type[Mechanism], Side]] = {
    "LocalDpMod": (LocalDpMod, "client"),
    "DifferentialPrivacyServerSideFixedClipping": (FixedClipping, "server"),
    "DifferentialPrivacyClientSideFixedClipping": (FixedClipping, "client"),
    "DifferentialPrivacyServerSideAdaptiveClipping": (AdaptiveClipping, "server"),
    "DifferentialPrivacyClientSideAdaptiveClipping": (AdaptiveClipping, "client"),
}
# Keys of a run that say nothing of differential privacy but stand beside it in most apps.
TRAINING_KEYS = frozenset(
    {"fraction_evaluate", "local_epochs", "learning_rate", "lr", "batch_size", "momentum", "weight_decay", "seed"}
)
ROUND_KEYS = ("num_server_rounds", "num_rounds")
SAMPLING_KEYS = ("fraction_train", "fraction_fit")


def name_strategy(kind: str, side: Side) -> str:
    return f"Flower {kind} clipping" + ("" if side == "unknown" else f" on the {side}")


def list_central_warnings(clients: int, side: Side) -> Iterator[str]:
    """Say what the strategies that add noise to the average leave open."""
    yield "The server sees every update before it adds the noise: against the server there is no ε and no bound."
    if side != "server":
        yield "Where the client clips, nothing checks that it did: an update that was not clipped has no ε."
    yield (
        f"The noise is for {clients:,} replies of equal weight. If fewer reply, or if replies are weighted by their "
        "number of examples, one client moves the average further. Flower refuses that only if it has an accountant."
    )
    yield SHARED_GENERATOR


def read_flower(path: Path, run: Run) -> GaussianRelease:
    """Read a pyproject.toml, `[tool.flwr.app.config]` or a table `dp` in it, or a JSON file of the same keys."""
    config = find_config(path)
    apart = isinstance(config.get("dp"), dict)
    settings = normalise(config["dp"]) if apart else dict(config)
    stated = config | settings
    run = run.complete(first(stated, ROUND_KEYS), first(stated, SAMPLING_KEYS))
    for key in (*ROUND_KEYS, *SAMPLING_KEYS, *TRAINING_KEYS):
        settings.pop(key, None)
    kind, side = choose_class(settings)
    try:
        return build_release(kind, side, settings, run)
    except UnknownNameError as error:
        hint = "" if apart else "; if the app has other keys, put these settings into a table of their own, 'dp'"
        raise SettingsError(f"{error}{hint}") from error


def find_config(path: Path) -> dict[str, Any]:
    """Find the run config in a pyproject.toml; any other file is one."""
    config: Any = read_table(path)
    if "tool" in config:
        for key in ("tool", "flwr", "app", "config"):
            config = config.get(key) if isinstance(config, dict) else None
    if not isinstance(config, dict) or not config:
        raise SettingsError(f"{path} has no [tool.flwr.app.config]: put the settings there")
    return normalise(config)


def build_release(kind: type[Mechanism], side: Side, settings: dict[str, Any], run: Run) -> GaussianRelease:
    if kind is not LocalDpMod:
        run = run.complete(delta=settings.pop("delta", None))
    mechanism = read_settings(kind, settings, f"Flower {kind.__name__}")
    return mechanism.release(run) if isinstance(mechanism, LocalDpMod) else mechanism.release(run, side)


def choose_class(settings: dict[str, Any]) -> tuple[type[Mechanism], Side]:
    """Take `mechanism` out of the settings, or else choose the class by the keys."""
    if "mechanism" in settings:
        name = settings.pop("mechanism")
        if not isinstance(name, str) or name not in CLASSES:
            raise UnknownNameError("Flower mechanism", str(name), CLASSES)
        return CLASSES[name]
    if "noise_multiplier" in settings:
        return (FixedClipping if "clipping_norm" in settings else AdaptiveClipping), "unknown"
    return LocalDpMod, "client"


def normalise(config: Mapping[str, Any]) -> dict[str, Any]:
    """Write keys as Flower's parameters are written: `dp-clipping-norm` is `clipping_norm`."""
    return {key.replace("-", "_").removeprefix("dp_"): value for key, value in config.items()}


def first(settings: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((settings[key] for key in keys if key in settings), None)
