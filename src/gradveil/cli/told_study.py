"""`gradveil reproduce told-defences`: what an attacker gains by being told the defence."""

from pathlib import Path
from typing import Annotated

import torch
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
from gradveil.cli.study_folders import prepare_folder
from gradveil.errors import UnknownNameError
from gradveil.experiments import TOLD_ARMS, ToldStudy, told_trials, write_told_tables

Arms = Annotated[
    list[str] | None, typer.Option("--arm", help="Run this arm only, also several times; all unless given.")
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the tables of what is there.")]


def told_study(
    arm: Arms = None,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/told-defences"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack percentile privacy, OASIS and CENSOR, told of them and not; a stopped run goes on where it was."""
    for name in arm or []:
        if name not in TOLD_ARMS:
            raise UnknownNameError("arm", name, TOLD_ARMS)
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["trial"], "told-defences")
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        study = ToldStudy(out, None if table else data_sets.load("fashion-mnist-sample", None, progress))
        if not table:
            study.run([one for one in told_trials() if arm is None or one.arm in arm], progress)
    path, written = write_told_tables(out, study)
    if as_json:
        print_json(written)
    print_path(console, path)
