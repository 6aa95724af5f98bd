"""Seal files that a version without seals wrote: python -m scripts.seal_files PATH...

A path is a file or a folder with such files: journals (*.jsonl), the JSON beside a checkpoint, `policies.json`, and
the `resume.safetensors` of a training. What is sealed already is checked and left as it is. Seal only files that you
trust: a seal shows later changes, not earlier ones.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from gradveil.errors import DataError, GradveilError
from gradveil.journal import write_line
from gradveil.results import SEAL, parse_sealed, read_sealed, seal, to_json, write_file
from gradveil.tensor_files import DIGEST, seal_tensors

CHECKPOINT = {"schema", "model", "made", "sha256"}
POLICIES = {"schema", "hybrid", "policies"}
STATE = "resume.safetensors"


def list_files(path: Path) -> Iterator[Path]:
    """List what can be sealed at a path; other JSON files in a folder are passed over."""
    if not path.is_dir():
        yield path
        return
    for one in sorted(path.rglob("*")):
        described = one.suffix == ".json" and one.with_suffix(".safetensors").exists()
        if one.suffix == ".jsonl" or one.name in ("policies.json", STATE) or described:
            yield one


def seal_file(path: Path) -> bool:
    """Seal one file; tell whether it was not sealed before."""
    mode = path.stat().st_mode & 0o777
    if path.suffix == ".jsonl":
        content: bytes | str | None = seal_journal(path)
    elif path.suffix == ".safetensors":
        content = seal_state(path)
    else:
        content = seal_record(path)
    if content is None:
        return False
    write_file(path, content, mode)
    return True


def seal_journal(path: Path) -> bytes | None:
    """Return the journal with every whole line sealed; a torn last line is left out."""
    before = path.read_bytes()
    lines = before.split(b"\n")[:-1]
    after = b"".join(seal_line(path, number, line) for number, line in enumerate(lines, 1))
    return None if after == before else after


def seal_line(path: Path, number: int, line: bytes) -> bytes:
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise ValueError("holds no record")
        if SEAL not in entry:
            return write_line(entry)
        parse_sealed(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}, {error}") from error
    return line + b"\n"


def seal_record(path: Path) -> str | None:
    """Return the sealed JSON of a checkpoint, whose weights must fit it, or of policies."""
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error
    if isinstance(record, dict) and SEAL in record:
        read_sealed(path)
        return None
    if not isinstance(record, dict) or set(record) not in (CHECKPOINT, POLICIES):
        raise DataError(f"{path} is neither the JSON of a checkpoint nor the policies of a search")
    if set(record) == CHECKPOINT:
        weights = path.with_suffix(".safetensors").read_bytes()
        if hashlib.sha256(weights).hexdigest() != record["sha256"]:
            raise DataError(f"{path} does not describe the weights beside it (SHA-256 differs)")
    return to_json(seal(record))


def seal_state(path: Path) -> bytes | None:
    """Return the sealed state of a training."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except SafetensorError as error:
        raise DataError(f"{path} cannot be read as safetensors: {error}") from error
    if DIGEST in metadata:
        return None
    if set(metadata) != {"made", "state"}:
        raise DataError(f"{path} is no state of a training")
    run = {name: json.loads(metadata[name]) for name in ("made", "state")}
    return seal_tensors(tensors, "run", json.dumps(run))


def main() -> None:
    """Seal all that was named; print one line for each file that changed."""
    try:
        for path in [one for argument in sys.argv[1:] for one in list_files(Path(argument))]:
            if seal_file(path):
                print(f"sealed {path}")
    except (GradveilError, OSError) as error:
        sys.exit(f"seal_files: {error}")


if __name__ == "__main__":
    main()
