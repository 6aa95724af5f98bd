"""A journal of finished work: one sealed line each, appended and synced, so that a killed run goes on where it was.

A line is JSON with the SHA-256 of its own content. A line that was changed later is refused, and so is one without a
seal: nobody can tell whether it was changed.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from gradveil.errors import OutputError
from gradveil.files import MAX_BYTES, read_regular
from gradveil.results import SEAL, parse_sealed, seal

BLOCK = 1 << 16


@dataclass(frozen=True)
class Journal:
    """The lines of one file; a torn last line is taken as never written."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """Read every whole line and check its seal; the entries come as they were appended."""
        try:
            lines = read_regular(self.path, MAX_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputError(f"cannot read {self.path}: {error.strerror}; check the path") from error
        return [self.parse(number, line) for number, line in enumerate(lines[:-1], 1)]

    def parse(self, number: int, line: bytes) -> dict[str, Any]:
        """Return the entry of one line, without its seal."""
        try:
            sealed = parse_sealed(line, "restore the file from a copy, or remove that line and its work is done again")
        except ValueError as error:
            raise OutputError(f"{self.path}, line {number}, {error}") from error
        return {key: value for key, value in sealed.items() if key != SEAL}

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line for good, or none of it; what is left of a torn one goes first."""
        line = write_line(entry)
        try:
            with self.path.open("a+b", buffering=0) as stream:
                # Two processes may share the work.
                fcntl.lockf(stream, fcntl.LOCK_EX)
                end = whole_lines(stream)
                stream.truncate(end)
                write_all(stream, line, end)
                os.fsync(stream.fileno())
        except OSError as error:
            raise OutputError(
                f"cannot write {self.path}: {error.strerror}; it is whole up to here: make room, then go on"
            ) from error


def write_line(entry: Mapping[str, Any]) -> bytes:
    """Write one sealed line; the seal is of the entry as it is read back."""
    plain = json.loads(json.dumps(entry, allow_nan=False))
    return json.dumps(seal(plain), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def whole_lines(stream: FileIO) -> int:
    """Find where the last whole line ends; reads a file that is whole at its last byte only."""
    end = stream.seek(0, os.SEEK_END)
    step = 1
    while end > 0:
        start = max(0, end - step)
        stream.seek(start)
        newline = stream.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end, step = start, BLOCK
    return 0


def write_all(stream: FileIO, line: bytes, end: int) -> None:
    """Write a line; if it does not fit, take back what was written of it."""
    try:
        while line:
            line = line[stream.write(line) :]
    except OSError:
        with contextlib.suppress(OSError):
            stream.truncate(end)
        raise
