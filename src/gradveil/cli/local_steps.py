"""`gradveil reproduce local-steps`: what local training hides, and what several rounds show."""

from pathlib import Path
from typing import Annotated

import typer

from gradveil import data as data_sets
from gradveil.cli.options import (
    AsJson,
    Quiet,
    StudyFolder,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.errors import OutputError, SettingsError, UnknownNameError
from gradveil.experiments import LOCAL_STEPS_JOURNAL as JOURNAL
from gradveil.experiments import LOCAL_STEPS_PARTS as PARTS
from gradveil.experiments import render_local_steps, run_local_steps
from gradveil.journal import Journal
from gradveil.results import record, write_file

Parts = Annotated[list[str] | None, typer.Option("--part", help=f"One of {', '.join(PARTS)}; all unless given.")]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the tables of what is there.")]


def local_steps(
    part: Parts = None,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/local-steps"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack updates of several local steps and several rounds; a run that was stopped goes on where it was."""
    for name in part or []:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    if table and not (out / JOURNAL).exists():
        raise SettingsError(f"{out} holds no results for a table: name the folder of a study with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}; choose another folder with --out") from error
    console = make_console(quiet, as_json)
    if not table:
        with progress_bar(console) as progress:
            loaded = data_sets.load("fashion-mnist-sample", None, progress)
            run_local_steps(out, loaded, part or list(PARTS), progress)
    entries = Journal(out / JOURNAL).read()
    write_file(out / "local-steps.md", render_local_steps(entries))
    if as_json:
        print_json(record("reproduce local-steps", {"parts": part or list(PARTS)}, {"trials": entries}))
    print_path(console, out / "local-steps.md")
