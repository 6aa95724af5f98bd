"""A journal of finished work: one JSON line each, appended and synced, so that a killed run goes on where it was."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.errors import OutputError


@dataclass(frozen=True)
class Journal:
    """The lines of one file; a torn last line is taken as never written."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """Read every whole line."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        found = []
        for number, line in enumerate(lines[:-1], 1):
            try:
                found.append(json.loads(line))
            except ValueError as error:
                raise OutputError(f"{self.path}, line {number}, is damaged: {error}; move the file away") from error
        return found

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one line for good; what is left of a torn one goes first."""
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n"
        self.path.touch()
        with self.path.open("r+b") as stream:
            content = stream.read()
            stream.truncate(content.rfind(b"\n") + 1)
            stream.seek(0, os.SEEK_END)
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())
