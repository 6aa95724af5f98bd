"""`gradveil reproduce attackers`: is `standard` ahead of `modern`, and never behind its versions, nor when told?"""

from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.options import (
    AsJson,
    Quiet,
    Root,
    StudyFolder,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.study_folders import prepare_folder, require_results
from gradveil.errors import UnknownNameError
from gradveil.experiments import ATTACKER_PARTS, AttackerStudy, attacker_cells, render_attackers
from gradveil.results import record, to_json, write_file

Parts = Annotated[
    list[str] | None, typer.Option("--part", help=f"One of {', '.join(ATTACKER_PARTS)}; all unless given.")
]
Grey = Annotated[str, typer.Option("--data", help="Grey images, for the versions.")]
Colour = Annotated[
    str | None, typer.Option("--colour", help="Colour images, e.g. cifar100; without them their cells are not run.")
]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


def attackers(
    part: Parts = None,
    data: Grey = "fashion-mnist-sample",
    root: Root = None,
    colour: Colour = None,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/attackers"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run `standard` beside `modern` and its own earlier versions; a run that was stopped goes on where it was."""
    for name in part or []:
        if name not in ATTACKER_PARTS:
            raise UnknownNameError("part", name, ATTACKER_PARTS)
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["cell"], "attackers")
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        named = {"grey": data, "colour": colour}
        sets = {kind: data_sets.load(name, root, progress) for kind, name in named.items() if name and not table}
        study = AttackerStudy(out, sets)
        if not table:
            study.run([cell for cell in attacker_cells(part or ATTACKER_PARTS) if cell.data in sets], progress)
    entries = study.journal.read()
    require_results(study.journal.path, part or [], list(dict.fromkeys(entry["cell"]["part"] for entry in entries)))
    write_file(out / "attackers.md", render_attackers(entries))
    written = record("reproduce attackers", {"parts": part, "threads": 1}, {"cells": entries})
    write_file(out / "attackers.json", to_json(written))
    if as_json:
        print_json(written)
    print_path(console, out / "attackers.md")
