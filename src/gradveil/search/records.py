"""What the journal of a search holds, put in order; nothing here computes a score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradveil.errors import OutputError
from gradveil.journal import Journal

JOURNAL = "journal.jsonl"
"""The file in a search's folder that holds a line for each score."""
Line = dict[str, Any]


@dataclass(eq=False)
class Records:
    """The finished work of a search.

    `privacy` maps (rule, policy) to the scores of the images at their places, `accuracy_batches` a policy to S_acc of
    each batch. A score that is not finite is NaN here and null in the journal.
    """

    header: Line = field(default_factory=dict)
    privacy: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    accuracy_batches: dict[str, tuple[float, ...]] = field(default_factory=dict)
    events: list[Line] = field(default_factory=list)
    validations: list[Line] = field(default_factory=list)
    seconds: float = 0.0
    jobs: int = 0

    def take(self, line: Line) -> None:
        """Add one line of the journal."""
        if "study" in line:
            self.header = line
        elif "event" in line:
            self.events.append(line)
        elif "validation" in line:
            self.validations.append(line)
        elif "privacy" in line:
            for policy, values in line["scores"].items():
                scores = self.privacy.setdefault((line["privacy"], policy), {})
                scores |= dict(zip(line["places"], map(from_json, values), strict=True))
        elif "accuracy" in line:
            batches = {policy: tuple(map(from_json, values)) for policy, values in line["accuracy"].items()}
            self.accuracy_batches |= batches
        if "seconds" in line:
            self.seconds += line["seconds"]
            self.jobs += 1

    def lacks(self, rule: str, policy: str, places: Sequence[int]) -> bool:
        """Tell whether a policy has still to be scored on one of these images."""
        scores = self.privacy.get((rule, policy), {})
        return any(place not in scores for place in places)

    def row(self, rule: str, policy: str, places: Sequence[int]) -> list[float]:
        scores = self.privacy[rule, policy]
        return [scores[place] for place in places]

    def accuracy_score(self, policy: str) -> float:
        """Return S_acc: the mean over batches; what is not finite counts as the worst there is."""
        batches = self.accuracy_batches[policy]
        mean = math.fsum(batches) / len(batches)
        return mean if math.isfinite(mean) else -math.inf


def read_records(folder: Path) -> Records:
    """Read the journal in a folder, whether or not the search is still at work there."""
    try:
        records = sort_lines(Journal(folder / JOURNAL).read())
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise OutputError(f"{folder / JOURNAL} holds a line that no search wrote: {error}; restore it") from error
    if not records.header:
        raise OutputError(f"{folder} holds no search: name the folder of one, or start one there with --out {folder}")
    return records


def sort_lines(lines: Sequence[Line]) -> Records:
    """Put the lines of a journal in order."""
    records = Records()
    for line in lines:
        records.take(line)
    return records


def to_json(value: float) -> float | None:
    return value if math.isfinite(value) else None


def from_json(value: float | None) -> float:
    return math.nan if value is None else value
