"""The record of an audit as the page reads it: checked once, then cut into cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.errors import DataError

Record = Mapping[str, Any]
AUDIT_VERSION = 3
OUTCOMES = ("leaks", "some", "untrusted", "undecided", "none-found")
"""From the worst news to the least bad."""
KEYS = {
    "settings": dict,
    "verdict": str,
    "outcome": str,
    "threat_model": str,
    "kind": str,
    "summaries": list,
    "arms": dict,
    "rows": list,
    "environment": dict,
    "class_names": list,
    "attacker_needs": dict,
}
CELL_KEYS = ("arm", "phase", "attack", "kind", "images", "failed", "outcome", "reason", "figures")
ROW_KEYS = ("arm", "phase", "attack", "image", "label", "status")


@dataclass(frozen=True, eq=False)
class Cell:
    """One arm, phase and attack: its summary, its rows, and the place of its first row."""

    number: int
    start: int
    summary: Record
    rows: Sequence[Record]

    @property
    def arm(self) -> str:
        return str(self.summary["arm"])

    @property
    def phase(self) -> str:
        return str(self.summary["phase"])

    @property
    def attack(self) -> str:
        return str(self.summary["attack"])

    @property
    def outcome(self) -> str:
        return str(self.summary["outcome"])

    @property
    def places(self) -> range:
        """The places of the rows among all rows."""
        return range(self.start, self.start + len(self.rows))


def check_record(record: Any, source: str = "the record") -> Record:
    """Refuse what is no record of an audit of this version; `source` names it in the message."""
    if not isinstance(record, dict) or record.get("command") != "audit" or "audit_version" not in record:
        raise DataError(f"{source} is no record of an audit: give the folder of a 'gradveil audit'")
    if record["audit_version"] != AUDIT_VERSION:
        raise DataError(
            f"{source} is of audit version {record['audit_version']}, this page is for version {AUDIT_VERSION}: "
            "run the audit again"
        )
    for key, kind in KEYS.items():
        if not isinstance(record.get(key), kind):
            raise DataError(f"{source} has no '{key}': it is not a complete record of an audit; copy it again")
    check_cells(record, source)
    return record


def check_cells(record: Record, source: str) -> None:
    summaries, rows = record["summaries"], record["rows"]
    for name, keys, entries in (("summary", CELL_KEYS, summaries), ("row", ROW_KEYS, rows)):
        for place, entry in enumerate(entries):
            missing = [key for key in keys if not isinstance(entry, dict) or key not in entry]
            if missing:
                raise DataError(f"{source}: {name} {place} has no '{missing[0]}'; copy the record again")
    if not all(isinstance(entry["images"], int) for entry in summaries):
        raise DataError(f"{source}: a summary does not count its images; copy the record again")
    outcomes = [record["outcome"], *(entry["outcome"] for entry in summaries)]
    unknown = [outcome for outcome in outcomes if outcome not in OUTCOMES]
    if unknown or not summaries:
        raise DataError(f"{source}: outcomes {unknown or 'missing'}; allowed are {', '.join(OUTCOMES)}")
    for cell in make_cells(record):
        names = (cell.arm, cell.phase, cell.attack)
        if len(cell.rows) != cell.summary["images"] or any(
            (row["arm"], row["phase"], row["attack"]) != names for row in cell.rows
        ):
            raise DataError(f"{source}: the rows do not follow the summaries at {', '.join(names)}; copy it again")
    if sum(entry["images"] for entry in summaries) != len(rows):
        raise DataError(f"{source}: {len(rows)} rows for fewer images in the summaries; copy it again")


def make_cells(record: Record) -> list[Cell]:
    """Put each summary beside its rows, which stand in the order of the summaries."""
    cells, start = [], 0
    for number, summary in enumerate(record["summaries"]):
        end = start + int(summary["images"])
        cells.append(Cell(number, start, summary, record["rows"][start:end]))
        start = end
    return cells


def leak_of(row: Record) -> float | None:
    """Return the larger advantage of a row, against T(x) or x; None where the attack has no result."""
    values = [row.get(f"advantage_{target}") for target in ("transformed", "original")]
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    return max(numbers) if numbers and row["status"] == "ok" else None


def severity(outcome: str) -> int:
    """Return the place of an outcome in the order from the worst."""
    return OUTCOMES.index(outcome)
