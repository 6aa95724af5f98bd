"""A journal of finished work: one JSON line each, appended and synced, so that a killed run goes on where it was."""

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
from gradveil.files import read_regular

BLOCK = 1 << 16
MAX_BYTES = 1 << 33


@dataclass(frozen=True)
class Journal:
    """The lines of one file; a torn last line is taken as never written."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """Read every whole line."""
        if not self.path.exists():
            return []
        lines = read_regular(self.path, MAX_BYTES).split(b"\n")
        entries = []
        for number, line in enumerate(lines[:-1], 1):
            try:
                entry = json.loads(line)
                if not isinstance(entry, dict):
                    raise ValueError("a line must be an object")
                entries.append(entry)
            except (ValueError, RecursionError) as error:
                raise OutputError(f"{self.path}, line {number}, is damaged: {error}; move the file away") from error
        return entries

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line for good, or none of it; what is left of a torn one goes first."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            with self.path.open("a+b", buffering=0) as stream:
                # Two processes may share the work. A search holds a lock of the other kind on this file, all the time.
                fcntl.lockf(stream, fcntl.LOCK_EX)
                end = whole_lines(stream)
                stream.truncate(end)
                write_all(stream, line, end)
                os.fsync(stream.fileno())
        except OSError as error:
            raise OutputError(
                f"cannot write {self.path}: {error.strerror}; it is whole up to here: make room, then go on"
            ) from error


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
