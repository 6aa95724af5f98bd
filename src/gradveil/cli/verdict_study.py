"""`gradveil reproduce verdict`: how often the audit's verdict is wrong, and how often it finds what is there."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.options import (
    AsJson,
    Quiet,
    Root,
    StudyFolder,
    WorkerCount,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.study_folders import keep_others_out, own_journal
from gradveil.errors import UnknownNameError
from gradveil.experiments import VERDICT_DATA, VERDICT_PARTS, VerdictStudy, render_verdict
from gradveil.results import record, to_json, write_file

Parts = Annotated[
    list[str] | None, typer.Option("--part", help=f"One of {', '.join(VERDICT_PARTS)}; all unless given.")
]
Colour = Annotated[
    str | None, typer.Option("--colour", help="Colour images, e.g. cifar100; without them their audits are not run.")
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


def verdict(
    part: Parts = None,
    colour: Colour = None,
    root: Root = None,
    table: TableOnly = False,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    out: StudyFolder = Path("runs/verdict"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure how often the verdict is wrong, and what it finds; a run that was stopped goes on where it was."""
    for name in part or ():
        if name not in VERDICT_PARTS:
            raise UnknownNameError("part", name, list(VERDICT_PARTS))
    console = make_console(quiet, as_json)
    torch.set_num_threads(1)
    grey, coloured = VERDICT_DATA
    with progress_bar(console) as progress, gather_crew(workers, ray) as crew:
        names = {grey: "fashion-mnist-sample", **({coloured: colour} if colour else {})}
        loaded = {} if table else {key: data_sets.load(name, root, progress) for key, name in names.items()}
        study = VerdictStudy(out, loaded, crew=crew)
        if not table:
            keep_others_out(out)
            for name in part or VERDICT_PARTS:
                study.run(name, list(VERDICT_PARTS[name]()), progress)
    with own_journal(out, "verdict", table):
        parts = study.results(part or ())
        text = render_verdict(parts)
    write_file(out / "verdict.md", text)
    written = record("reproduce verdict", {"parts": list(parts), **study.describe()}, {"trials": parts})
    write_file(out / "verdict.json", to_json(written))
    if as_json:
        print_json(written)
    print_path(console, out / "verdict.md")
