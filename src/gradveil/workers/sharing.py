"""Values that many jobs share; each process reads a value once."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_latest: dict[str, Any] = {}


def remember(key: str, value: Any) -> None:
    """Keep one value in this process and drop the one before: a process works on one kind of job at a time."""
    _latest.clear()
    _latest[key] = value


def recall(key: str) -> Any | None:
    """Return the value of `key` if it is the one that this process keeps."""
    return _latest.get(key)


@dataclass(frozen=True, eq=False)
class Here(Generic[Value]):
    """A value in this process."""

    value: Value

    def get(self) -> Value:
        return self.value


@dataclass(frozen=True)
class InFile(Generic[Value]):
    """A value in a file that this program wrote, in a folder of its own that no other user can read."""

    path: Path

    def get(self) -> Value:
        value: Value | None = recall(str(self.path))
        if value is None:
            value = pickle.loads(self.path.read_bytes())
            remember(str(self.path), value)
        return value
