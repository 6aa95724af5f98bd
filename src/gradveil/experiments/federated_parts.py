"""All parts of the study of collaborative training: run them, and write their tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradveil.data import DataSet
from gradveil.errors import OutputError, SettingsError, UnknownNameError
from gradveil.experiments.federated import JOURNAL, PARTS, FederatedStudy
from gradveil.experiments.federated_leak import LEAKS, LeakStudy, trials
from gradveil.experiments.federated_tables import render_markdown
from gradveil.experiments.leak_tables import draw_leaks, make_table
from gradveil.journal import Journal
from gradveil.results import record, write_file
from gradveil.study import OnProgress
from gradveil.workers import Crew

LEAK = "leak"
FEDERATED_PARTS = (*PARTS, LEAK)
TABLES = "federated.md"
PICTURE = "leak.png"


def prepare_federated_study(out: Path, chosen: Sequence[str], table: bool) -> None:
    """Refuse parts that are unknown; make the folder of the study, or, for a table, ask for one that holds results."""
    for name in chosen:
        if name not in FEDERATED_PARTS:
            raise UnknownNameError("part", name, FEDERATED_PARTS)
    if table and not any((out / name).exists() for name in (JOURNAL, LEAKS)):
        raise SettingsError(f"{out} holds no results for a table: name the folder of a study with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}; choose another folder with --out") from error


def run_federated_study(out: Path, data: DataSet, chosen: Sequence[str], crew: Crew, progress: OnProgress) -> None:
    """Run what the journals lack of the chosen parts."""
    study = FederatedStudy(out, data, crew)
    for name in chosen:
        if name == LEAK:
            LeakStudy(out, data, crew).run(trials(), progress)
        else:
            study.run(list(PARTS[name]()), progress)


def write_federated_tables(out: Path, chosen: Sequence[str]) -> tuple[Path, dict[str, Any]]:
    """Write the tables of all parts from the journals; return where, and the record of what was run."""
    entries, attacked = Journal(out / JOURNAL).read(), Journal(out / LEAKS).read()
    text = [render_markdown({name: list(make()) for name, make in PARTS.items()}, entries)]
    if attacked:
        text += [
            "## Leak against round",
            "",
            f"![Leak against round]({PICTURE})",
            "",
            *make_table(trials(), attacked),
            "",
        ]
        write_file(out / PICTURE, draw_leaks(trials(), attacked))
    write_file(out / TABLES, "\n".join(text))
    written = record("reproduce federated", {"parts": list(chosen)}, {"trials": entries, "attacked": attacked})
    return out / TABLES, written
