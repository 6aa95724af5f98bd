"""Several audits on one page, cell by cell. It has no pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradveil.reports.audit_charts import make_rate, make_strips
from gradveil.reports.audit_page import WORDS, refusing_gaps
from gradveil.reports.audit_record import Cell, Record, check_record, make_cells
from gradveil.reports.sealed_page import render_page
from gradveil.results import SEAL, seal

Key = tuple[str, str, str]
COMPARABLE = ("audit_version", "standard_version", "kind")
DIFFERENT_WORK = ("data", "model", "labels", "knows_defence", "images_per_client", "participants", "local")


@dataclass(frozen=True, eq=False)
class Run:
    """One audit under the name that the page gives it."""

    number: int
    name: str
    record: Record
    cells: Mapping[Key, Cell]

    @property
    def seal(self) -> str:
        return str(self.record.get(SEAL) or seal(self.record)[SEAL])


@dataclass(frozen=True, eq=False)
class Line:
    """One phase, arm and attack in all runs; None where a run does not have it."""

    phase: str
    arm: str
    attack: str
    cells: Sequence[Cell | None]

    @property
    def agrees(self) -> bool:
        """Tell whether all runs that have it came to the same outcome."""
        return len({cell.outcome for cell in self.cells if cell}) == 1

    @property
    def shared(self) -> bool:
        """Tell whether all runs have it."""
        return all(self.cells)


def render_comparison(records: Mapping[str, Record]) -> str:
    """Render one page for several records by name."""
    runs = [make_run(number, name, record) for number, (name, record) in enumerate(records.items(), start=1)]
    with refusing_gaps(" or ".join(records)):
        return draw(runs)


def draw(runs: Sequence[Run]) -> str:
    lines = make_lines(runs)
    flat = [cell for line in lines for cell in line.cells if cell]
    context = {
        "runs": runs,
        "lines": lines,
        "places": number_cells(lines),
        "strips": make_strips(flat),
        "rates": [make_rate(cell.summary.get("identification")) for cell in flat],
        "attacks": len({line.attack for line in lines}),
        "warnings": warn(runs),
        "differences": find_differences(runs),
        **WORDS,
    }
    return render_page("comparison.html", [run.seal for run in runs], context)


def make_run(number: int, name: str, record: Record) -> Run:
    check_record(record, name)
    return Run(number, name, record, {(c.phase, c.arm, c.attack): c for c in make_cells(record)})


def make_lines(runs: Sequence[Run]) -> list[Line]:
    """List every cell that any run has, in the order of the first run that has it."""
    keys = dict.fromkeys(key for run in runs for key in run.cells)
    return [Line(*key, [run.cells.get(key) for run in runs]) for key in keys]


def number_cells(lines: Sequence[Line]) -> list[list[int | None]]:
    """Give each cell of each line its place among all cells."""
    places: list[list[int | None]] = []
    count = 0
    for line in lines:
        places.append([])
        for cell in line.cells:
            places[-1].append(count if cell else None)
            count += cell is not None
    return places


def warn(runs: Sequence[Run]) -> list[str]:
    """Say why figures of these runs must not be set against each other."""
    warnings = []
    for key in COMPARABLE:
        values = [str(run.record.get(key)) for run in runs]
        if len(set(values)) > 1:
            warnings.append(
                f"The runs differ in {key.replace('_', ' ')} ({', '.join(values)}): do not compare their figures."
            )
    changed = [key for key in DIFFERENT_WORK if differs([run.record["settings"].get(key) for run in runs])]
    if changed:
        names = ", ".join(key.replace("_", " ") for key in changed)
        warnings.append(f"The runs attack different things ({names}): a difference in leak may come from that.")
    images = [{(row["image"], row["label"]) for row in run.record["rows"]} for run in runs]
    if any(one != images[0] for one in images):
        warnings.append("The runs attacked different images: single images cannot be compared.")
    return warnings


def find_differences(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """List the settings that are not the same in all runs."""
    settings = [run.record["settings"] for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one)
    return [
        (key.replace("_", " "), [write(one.get(key)) for one in settings])
        for key in keys
        if differs([one.get(key) for one in settings])
    ]


def differs(values: Sequence[Any]) -> bool:
    return any(value != values[0] for value in values)


def write(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
