"""`gradveil reproduce federated`: what collaborative training reaches."""

from pathlib import Path
from typing import Annotated

import typer

from gradveil import data as data_sets
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.options import (
    AsJson,
    Quiet,
    StudyFolder,
    WorkerCount,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.study_folders import keep_others_out, own_journal
from gradveil.experiments import (
    FEDERATED_PARTS,
    prepare_federated_study,
    run_federated_study,
    write_federated_tables,
)

Parts = Annotated[
    list[str] | None, typer.Option("--part", help=f"One of {', '.join(FEDERATED_PARTS)}; all unless given.")
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the tables of what is there.")]


def federated_study(
    part: Parts = None,
    table: TableOnly = False,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    out: StudyFolder = Path("runs/federated"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train together and alone, take FedAvg apart, and attack captured rounds; a stopped run goes on where it was."""
    chosen = part or list(FEDERATED_PARTS)
    with own_journal(out, "federated", table):
        prepare_federated_study(out, chosen, table)
    console = make_console(quiet, as_json)
    if not table:
        keep_others_out(out)
        with progress_bar(console) as progress, gather_crew(workers, ray) as crew:
            run_federated_study(out, data_sets.load("fashion-mnist-sample", None, progress), chosen, crew, progress)
    with own_journal(out, "federated", table):
        path, written = write_federated_tables(out, chosen)
    if as_json:
        print_json(written)
    print_path(console, path)
