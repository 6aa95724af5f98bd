"""Result files: how they are written, sealed and described."""

import contextlib
import hashlib
import json
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from gradveil import __version__
from gradveil.errors import DataError, OutputError, SettingsError, UnknownNameError
from gradveil.files import MAX_BYTES, MAX_JSON_BYTES, read_regular, require_regular

SCHEMA = 1
PRIVATE, OPEN = 0o600, 0o644
"""Who can read a file: its owner alone, if it holds private images; everyone."""
PART = ".gradveil-part"
"""How the name of a file ends while it is written."""
SEAL = "sha256_of_content"
UNSEALED = (
    "gradveil did not write it, or a version without seals did; if you trust the file, seal it once with "
    "scripts/seal_files.py of the repository"
)


def write_file(path: Path, content: str | bytes, mode: int = OPEN) -> None:
    """Write to a temporary name and move the file, so that a reader never sees half a file."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists():
            require_regular(path)  # moving a file onto a device or a pipe would remove it
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PART)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error


def to_json(record: Mapping[str, Any]) -> str:
    """Write a record as JSON; NaN and infinity, which JSON does not have, are refused."""
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Add the SHA-256 of a record's content to it, so that a change is seen when it is read back."""
    content = {key: value for key, value in record.items() if key != SEAL}
    return {**content, SEAL: hashlib.sha256(canonical(content)).hexdigest()}


def canonical(record: Mapping[str, Any]) -> bytes:
    """Write a record in the one form that its hash is taken of."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def parse_sealed(text: bytes, advice: str = "copy it again") -> dict[str, Any]:
    """Parse a sealed record; the ValueError of any other text says what is wrong and what to do."""
    try:
        record = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"cannot be read as JSON, it is nested too deeply: {advice}") from error
    except ValueError as error:
        raise ValueError(f"cannot be read as JSON ({error}): {advice}") from error
    if not isinstance(record, dict):
        raise ValueError(f"holds no record: {advice}")
    if SEAL not in record:
        raise ValueError(f"has no seal: {UNSEALED}")
    if not is_sealed(record):
        raise ValueError(f"was changed or damaged (its SHA-256 differs): {advice}")
    return record


def is_sealed(record: Mapping[str, Any]) -> bool:
    """Tell whether a record has the seal of its content; a number too large for JSON never was in one."""
    try:
        return bool(seal(record)[SEAL] == record[SEAL])
    except (ValueError, RecursionError):
        return False


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a sealed record; a file that is damaged, changed or no record at all is refused."""
    try:
        return parse_sealed(read_regular(path, MAX_JSON_BYTES))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; copy it again") from error
    except ValueError as error:
        raise DataError(f"{path} {error}") from error


def read_hashed(path: Path, sha256: object) -> bytes:
    """Read a file whose SHA-256 a sealed record holds; another file is refused."""
    try:
        content = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; copy it again") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(f"{path} is not the file that its JSON describes (SHA-256 differs): copy both again")
    return content


def record(command: str, settings: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Make the record that `<command>.json` holds."""
    return {
        "schema": SCHEMA,
        "command": command,
        "settings": dict(settings),
        **figures,
        "environment": environment(),
    }


def environment() -> dict[str, Any]:
    """Describe the machine and the software; `finished` is the only part that changes from run to run."""
    return {
        **provenance(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def provenance() -> dict[str, Any]:
    """Name the software and the machine that a result came from: what every line of a journal carries."""
    return {
        "gradveil": __version__,
        "commit": commit(),
        "torch": version("torch"),
        "processor": processor(),
        "cores": os.cpu_count(),
    }


@cache
def commit(package: Path = Path(__file__).parent) -> str | None:
    """Return the git commit of the source tree, with `-dirty` if files were changed; None outside a checkout of ours.

    An installed package may lie within someone else's repository, so only `src/gradveil` of a checkout counts.
    """
    root = package.parent.parent
    if package.parent.name != "src" or not (root / ".git").exists():
        return None
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip() or None
    return None


@cache
def processor() -> str:
    """Return the name of the processor from Linux, or from Python on other systems."""
    with contextlib.suppress(OSError):
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if match:
            return match[1]
    return platform.processor() or "unknown"


Settings = TypeVar("Settings")


def read_settings(
    kind: type[Settings], record: Mapping[str, Any], name: str, /, **readers: Callable[[Any], Any]
) -> Settings:
    """Read a dataclass of settings back from JSON; an unknown key or a wrong type is refused.

    A list becomes a tuple. `readers` turn the JSON of single fields into their values.
    """
    if not isinstance(record, Mapping):
        raise SettingsError(f"the {name} settings are {type(record).__name__}: they must be names with values")
    allowed = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    unknown = next((key for key in record if key not in allowed), None)
    if unknown is not None:
        raise UnknownNameError(f"{name} setting", unknown, allowed)

    def read(key: str, value: Any) -> Any:
        if key in readers and value is not None:
            return readers[key](value)
        return tuple(value) if isinstance(value, list) else value

    try:
        return kind(**{key: read(key, value) for key, value in record.items()})
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise SettingsError(f"the {name} settings {dict(record)} cannot be read: {error}") from error
