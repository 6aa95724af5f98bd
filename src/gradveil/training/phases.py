"""Moments of training that have a name: `init`, `step-10`, `epoch-1`, `final`; together with others, `round-7`.

Weights that come from elsewhere are of the phase `given`: nothing is known of their training.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gradveil.errors import SettingsError

GIVEN = "given"
"""The phase of weights that came from a file."""
PATTERN = re.compile(r"(?P<unit>step|epoch|round)-(?P<count>[1-9]\d{0,8})")


@dataclass(frozen=True)
class Phase:
    """One named moment of training.

    >>> parse_phase("epoch-2").step(steps_per_epoch=39, epochs=12)
    78
    >>> str(parse_phase("final"))
    'final'
    """

    unit: str
    count: int = 0

    def __str__(self) -> str:
        return self.unit if self.unit in ("init", "final", GIVEN) else f"{self.unit}-{self.count}"

    def step(self, steps_per_epoch: int, epochs: int) -> int:
        """Return the number of optimiser steps taken when this phase is reached; refuse one after the end."""
        if self.unit in ("init", "final"):
            return 0 if self.unit == "init" else steps_per_epoch * epochs
        if self.unit == "round":
            raise SettingsError(
                f"phase '{self}' is one of collaborative training: choose init, step-N, epoch-N or final"
            )
        if self.unit == GIVEN:
            raise SettingsError(
                f"phase '{self}' is of weights that come from elsewhere: give these, or choose init, step-N, epoch-N "
                "or final"
            )
        last = epochs if self.unit == "epoch" else steps_per_epoch * epochs
        if self.count > last:
            raise SettingsError(
                f"phase '{self}' lies after the end of training: choose from {self.unit}-1 to {self.unit}-{last}, "
                "or train for more epochs"
            )
        return self.count * (steps_per_epoch if self.unit == "epoch" else 1)


def parse_phase(text: str) -> Phase:
    """Turn `init`, `step-N`, `epoch-N`, `final` or `given` into a phase."""
    if text in ("init", "final", GIVEN):
        return Phase(text)
    match = PATTERN.fullmatch(text)
    if match is None:
        raise SettingsError(f"'{text}' is no phase of training: choose init, step-N, epoch-N or final, N from 1")
    return Phase(match["unit"], int(match["count"]))


def phase_steps(phases: Iterable[str], steps_per_epoch: int, epochs: int) -> dict[str, int]:
    """Map each phase to the number of steps after which it is reached."""
    return {phase: parse_phase(phase).step(steps_per_epoch, epochs) for phase in phases}
