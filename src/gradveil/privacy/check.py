"""The outcome of a check: ε of one release and of a run, the reconstruction bound, and what nothing enforces."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gradveil.privacy.gaussian import gaussian_epsilon, run_epsilon
from gradveil.privacy.reconstruction import pure_success_bound, success_bound
from gradveil.privacy.settings import DELTA, Run

Unit = Literal["client", "training sample"]


@dataclass(frozen=True)
class Figures:
    """What is guaranteed to one pair of neighbours; ε is None if there is no guarantee, and the bounds are then 1.

    The bounds do not count the help of sampling.
    """

    epsilon_release: float | None = None
    epsilon_run: float | None = None
    reconstruction_bound: float = 1.0
    reconstruction_bound_run: float = 1.0


@dataclass(frozen=True)
class PrivacyCheck:
    """What the settings of a mechanism are worth.

    `figures` are for the `neighbours` named, `replacing` for those with one `unit` replaced; None if `figures` are
    already for these.
    """

    mechanism: str
    unit: Unit
    neighbours: str
    figures: Figures
    replacing: Figures | None
    rounds: int
    sampling: float
    delta: float
    epsilon_claimed: float | None = None
    deviation: float | None = None
    warnings: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return the check as it stands in JSON, its figures at the top level."""
        record = asdict(self)
        return {**record.pop("figures"), **record, "warnings": list(self.warnings)}


@dataclass(frozen=True)
class GaussianRelease:
    """Gaussian noise on something clipped.

    `noise` is the standard deviation divided by how far one `unit` more or less moves what is released,
    `noise_replacing` the same for one that is replaced.
    """

    mechanism: str
    unit: Unit
    noise: float
    noise_replacing: float
    run: Run
    epsilon_claimed: float | None = None
    deviation: float | None = None
    warnings: tuple[str, ...] = ()

    def check(self) -> PrivacyCheck:
        """Compute the figures and list the warnings."""
        rounds, sampling, delta = self.run.resolve()
        return PrivacyCheck(
            self.mechanism,
            self.unit,
            f"one {self.unit} more or less",
            self.compute(self.noise, sampling),
            self.compute(self.noise_replacing, 1.0),
            rounds,
            sampling,
            delta,
            self.epsilon_claimed,
            self.deviation,
            (*self.warnings, *self.list_run_warnings()),
        )

    def compute(self, noise: float, sampling: float) -> Figures:
        if noise == 0:
            return Figures()
        rounds, _, delta = self.run.resolve()
        return Figures(
            gaussian_epsilon(noise, delta),
            run_epsilon(noise, sampling, rounds, delta),
            success_bound(noise),
            success_bound(noise / math.sqrt(rounds)),
        )

    def list_run_warnings(self) -> Iterator[str]:
        """Say what the run adds to a single release."""
        if self.noise == 0:
            yield "No noise is added: there is no ε, and nothing limits a reconstruction."
            return
        rounds, sampling, delta = self.run.resolve()
        if self.run.delta is None:
            yield f"δ is not stated: the figures are for {DELTA:g}. Keep it far below 1 / the number of {self.unit}s."
        if self.run.rounds is None:
            yield "The number of rounds is not stated: ε of the run is that of one release."
        if sampling < 1:
            unsampled = gaussian_epsilon(self.noise, delta, rounds)
            yield (
                f"Sampling helps only if each {self.unit} is drawn on its own, and only against someone who does not "
                f"see who was drawn. Without it ε of the run is {format_epsilon(unsampled)}. The accountant does not "
                f"cover sampling with one {self.unit} replaced: that ε is without it."
            )


@dataclass(frozen=True)
class PureRelease:
    """A release whose own analysis states one ε for δ = 0; it adds up over the rounds. None is for no guarantee."""

    mechanism: str
    epsilon: float | None
    run: Run
    warnings: tuple[str, ...] = ()

    def check(self) -> PrivacyCheck:
        """Compute the figures; sampling is not counted, because the receiver sees who answers."""
        rounds = self.run.rounds or 1
        figures = Figures()
        if self.epsilon is not None:
            total = rounds * self.epsilon
            figures = Figures(self.epsilon, total, pure_success_bound(self.epsilon), pure_success_bound(total))
        neighbours = "one client replaced"
        return PrivacyCheck(
            self.mechanism, "client", neighbours, figures, None, rounds, 1.0, 0.0, warnings=self.warnings
        )


def format_epsilon(value: float | None) -> str:
    """Print ε for reading.

    >>> [format_epsilon(value) for value in (None, 0.25, 70333.0, 2.131e8)]
    ['none', '0.25', '70,333', '2.13e+08']
    """
    if value is None:
        return "none"
    return f"{value:,.0f}" if 1000 <= value < 1e7 else f"{value:.3g}"
