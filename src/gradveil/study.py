"""Studies that survive a kill: what a journal lacks is run, and every result is written down as it comes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradveil.errors import GradveilError
from gradveil.journal import Journal
from gradveil.results import provenance
from gradveil.workers import Crew, Job, Report

PROVENANCE = "provenance"
Line = Mapping[str, Any]
"""One line of a journal."""
Refusals = Mapping[type[GradveilError], str]
"""For each error that is a result and not a fault: the field of the line that its text goes to."""
OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, eq=False)
class WorkItem:
    """A piece of work: the fields that identify it in the journal, and the job that returns the other fields.

    An error among the `refusals` becomes a line. A job that reports its steps reports them under `name`. Every line
    says which software and machine made it: those of the worker, which need not be those of the writer.
    """

    key: Line
    job: Job[Line]
    name: str = ""
    refusals: Refusals = field(default_factory=dict)

    def run(self, report: Report) -> dict[str, Any]:
        """Return the line of the journal."""
        try:
            return {**self.key, **self.job.run(report), PROVENANCE: provenance()}
        except tuple(self.refusals) as error:
            name = next(name for kind, name in self.refusals.items() if isinstance(error, kind))
            return {**self.key, name: str(error), PROVENANCE: provenance()}


def run_missing(
    journal: Journal,
    items: Sequence[WorkItem],
    crew: Crew,
    progress: OnProgress,
    what: str,
    identify: Callable[[Line], object] | None = None,
) -> None:
    """Run the items that the journal lacks.

    A line is the result of an item if it holds the item's key; all keys of a study have the same fields. `identify`, if
    given, turns lines and keys into what is compared instead.
    """
    run_items(journal, find_missing(journal.read(), items, identify), crew, progress, what)


def find_missing(
    lines: Sequence[Line], items: Sequence[WorkItem], identify: Callable[[Line], object] | None = None
) -> list[WorkItem]:
    """Leave out items that have a line, and all but the first of those that are the same."""
    if not items:
        return []
    names = tuple(items[0].key)
    tell = identify or (lambda line: [line.get(name) for name in names])
    seen = {to_text(tell(line)) for line in lines}
    missing = []
    for item in items:
        text = to_text(tell(item.key))
        if text not in seen:
            seen.add(text)
            missing.append(item)
    return missing


def to_text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def run_items(
    journal: Journal,
    items: Sequence[WorkItem],
    crew: Crew,
    progress: OnProgress,
    what: str,
    on_line: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Run every item; append each line to the journal as it comes, then hand it to `on_line`."""
    done = 0

    def report(position: int, step: int, steps: int) -> None:
        if items[position].name:
            progress(items[position].name, step, steps)

    def keep(_: int, line: dict[str, Any]) -> None:
        nonlocal done
        journal.append(line)
        if on_line is not None:
            on_line(line)
        done += 1
        progress(what, done, len(items))

    crew.run(items, report, keep)


def without_provenance(line: Line) -> dict[str, Any]:
    """Leave out who made a line: what it says is the same on another machine."""
    return {name: value for name, value in line.items() if name != PROVENANCE}


def silent(what: str, done: int, total: int) -> None:
    """Report progress to nobody."""
