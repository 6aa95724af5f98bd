"""Values that many jobs need, handed to each process once."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

_kept: dict[str, Any] = {}


def keep(key: str, value: Any) -> None:
    """Remember one value in this process, in place of the one before: jobs of two kinds do not alternate."""
    _kept.clear()
    _kept[key] = value


def kept(key: str) -> Any | None:
    return _kept.get(key)


@dataclass(frozen=True, eq=False)
class Here(Generic[Value]):
    """A value in this very process."""

    value: Value

    def get(self) -> Value:
        return self.value


@dataclass(frozen=True)
class InFile(Generic[Value]):
    """A value in a file that this program wrote, in a folder that only it can enter."""

    path: Path

    def get(self) -> Value:
        found = kept(str(self.path))
        if found is None:
            found = pickle.loads(self.path.read_bytes())
            keep(str(self.path), found)
        value: Value = found
        return value
