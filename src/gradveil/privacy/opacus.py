"""Opacus: DP-SGD on a client, one training sample at a time.

Facts are those of opacus 1.6: optimizers/optimizer.py adds noise of deviation noise_multiplier·max_grad_norm to the sum
of the clipped gradients; data_loader.py draws each sample on its own if `poisson_sampling` is set.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.errors import SettingsError
from gradveil.privacy.check import GaussianRelease
from gradveil.privacy.settings import (
    Run,
    read_table,
    require_count,
    require_not_negative,
    require_positive,
    require_share,
)
from gradveil.results import read_settings


@dataclass(frozen=True)
class OpacusSettings:
    """The arguments of `PrivacyEngine.make_private`, and how long a client trains in one round."""

    noise_multiplier: float
    max_grad_norm: float | tuple[float, ...]
    sample_rate: float
    steps: int | None = None
    epochs: int | None = None
    delta: float | None = None
    poisson_sampling: bool = True
    secure_mode: bool = False

    def __post_init__(self) -> None:
        require_not_negative("noise_multiplier", self.noise_multiplier)
        for norm in self.max_grad_norm if isinstance(self.max_grad_norm, tuple) else (self.max_grad_norm,):
            require_positive("max_grad_norm", norm)
        require_share("sample_rate", self.sample_rate)
        if (self.steps is None) == (self.epochs is None):
            raise SettingsError("the Opacus settings need either steps or epochs: give one of them")
        require_count("epochs" if self.steps is None else "steps", self.epochs if self.steps is None else self.steps)
        for name, value in (("poisson_sampling", self.poisson_sampling), ("secure_mode", self.secure_mode)):
            if not isinstance(value, bool):
                raise SettingsError(f"{name} is {value!r}: it must be true or false")

    def count_steps(self) -> int:
        """Count the steps of one round; an epoch has 1 / sample_rate of them, rounded up."""
        return self.steps or math.ceil((self.epochs or 0) / self.sample_rate - 1e-9)

    def release(self, run: Run) -> GaussianRelease:
        """Describe one step; a run is all steps of all rounds, with the help of sampling."""
        rounds = (run.rounds or 1) * self.count_steps()
        sampling = self.sample_rate if self.poisson_sampling else 1.0
        return GaussianRelease(
            "Opacus DP-SGD",
            "training sample",
            self.noise_multiplier,
            self.noise_multiplier / 2,
            Run(rounds, sampling, run.complete(delta=self.delta).delta),
            deviation=self.noise_multiplier * total_norm(self.max_grad_norm),
            warnings=tuple(self.list_warnings()),
        )

    def list_warnings(self) -> Iterator[str]:
        yield "ε is for one training sample. For all the data of a client it grows with their number."
        if not self.poisson_sampling:
            yield "Without Poisson sampling the help of sampling is not proven: ε of the run is counted without it."
        if not self.secure_mode:
            yield "Without secure_mode whoever knows the seed of torch's generator subtracts the noise."


def total_norm(norms: Any) -> float:
    """Compute the clip of the whole gradient; a list holds one for each layer."""
    return math.hypot(*norms) if isinstance(norms, tuple) else float(norms)


def read_opacus(path: Path, run: Run) -> GaussianRelease:
    """Read a JSON or TOML file of `OpacusSettings`."""
    return read_settings(OpacusSettings, read_table(path), "Opacus").release(run)
