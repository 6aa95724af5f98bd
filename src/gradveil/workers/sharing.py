"""Values that many jobs share; each process reads a value once."""

import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from uuid import uuid4

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
    """A value in a file without a name, which the process `owner` holds open under the number `handle`.

    The value may hold private images. The file is gone when its owner ends, however it ends; only processes of the same
    user can read it.
    """

    owner: int
    handle: int
    key: str

    def get(self) -> Value:
        value: Value | None = recall(self.key)
        if value is None:
            with Path(f"/proc/{self.owner}/fd/{self.handle}").open("rb") as stream:
                value = pickle.load(stream)
            remember(self.key, value)
        return value


@contextmanager
def shared_in_file(value: Value) -> Iterator[InFile[Value]]:
    """Keep a value in a file for other processes of this machine while the block runs."""
    with tempfile.TemporaryFile(prefix="gradveil-") as stream:
        pickle.dump(value, stream)
        stream.flush()
        yield InFile(os.getpid(), stream.fileno(), uuid4().hex)
