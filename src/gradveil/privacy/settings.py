"""Settings that come from files and from people: read as data, checked number by number."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.errors import SettingsError
from gradveil.files import MAX_JSON_BYTES, read_regular

DELTA = 1e-5
# Within these limits no figure overflows.
TINY, HUGE, SMALLEST_SHARE, MOST = 1e-30, 1e30, 1e-12, 10**12


@dataclass(frozen=True)
class Run:
    """How often a client releases, the share of clients drawn each round, and δ; None is for what nobody stated."""

    rounds: int | None = None
    sampling: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None:
            require_count("rounds", self.rounds)
        if self.sampling is not None:
            require_share("sampling", self.sampling)
        if self.delta is not None:
            require_delta(self.delta)

    def resolve(self) -> tuple[int, float, float]:
        """Return rounds, sampling and δ with the defaults for what nobody stated."""
        return self.rounds or 1, self.sampling or 1.0, self.delta or DELTA

    def complete(self, rounds: Any = None, sampling: Any = None, delta: Any = None) -> "Run":
        """Fill what is None with the values that a file states."""
        return Run(
            rounds if self.rounds is None else self.rounds,
            sampling if self.sampling is None else self.sampling,
            delta if self.delta is None else self.delta,
        )


def require_number(name: str, value: Any, low: float, high: float) -> None:
    """Refuse whatever is no number from `low` to `high`; infinity and NaN never are."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SettingsError(f"{name} is {value!r}: it must be a number from {low:g} to {high:g}")


def require_positive(name: str, value: Any) -> None:
    require_number(name, value, TINY, HUGE)


def require_not_negative(name: str, value: Any) -> None:
    if isinstance(value, bool) or value != 0:
        require_number(name, value, TINY, HUGE)


def require_share(name: str, value: Any) -> None:
    require_number(name, value, SMALLEST_SHARE, 1)


def require_delta(value: Any) -> None:
    require_number("delta", value, 1e-300, 0.999)


def require_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise SettingsError(f"{name} is {value!r}: it must be a whole number from 1 to {MOST:,}")


def read_table(path: Path) -> dict[str, Any]:
    """Read a TOML file or, under any other name, a JSON file, whose top level is a table."""
    try:
        text = read_regular(path, MAX_JSON_BYTES).decode()
        table = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise SettingsError(f"{path} cannot be read as {path.suffix[1:] or 'JSON'}: {reason}") from error
    if not isinstance(table, dict):
        raise SettingsError(f"{path} holds no settings: give names with values")
    return table
