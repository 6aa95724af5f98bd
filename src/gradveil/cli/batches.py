"""`gradveil reproduce batches`: what is rebuilt of batches and of several local steps?"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.options import (
    AsJson,
    DataName,
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
from gradveil.experiments.batch_tables import make_lines, render_markdown
from gradveil.experiments.batches import ATTACKS, IMAGES, MODELS, RUN, BatchStudy, cells
from gradveil.experiments.versions import render_appendix
from gradveil.results import record, to_json, write_file

ModelNames = Annotated[
    list[str] | None, typer.Option("--model", help="Run this model only, also several times; all unless given.")
]
AttackNames = Annotated[
    list[str] | None, typer.Option("--attack", help="Run this attack only, also several times; all unless given.")
]
Images = Annotated[int, typer.Option("--images", min=1, help="How many test images to attack in a cell, at least 32.")]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


def batches(
    data: DataName = "fashion-mnist-sample",
    root: Root = None,
    model: ModelNames = None,
    attack: AttackNames = None,
    images: Images = IMAGES,
    table: TableOnly = False,
    out: StudyFolder = Path("runs/batches"),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack batches of 1 to 32 images, and 1 to 25 local steps; a run that was stopped goes on where it was."""
    for kind, names, known in (("model", model, MODELS), ("attack", attack, ATTACKS)):
        for name in names or []:
            if name not in known:
                raise UnknownNameError(kind, name, list(known))
    chosen = [
        replace(one, images=images)
        for one in cells()
        if (model is None or one.model in model) and (attack is None or one.attack in attack)
    ]
    console = make_console(quiet, as_json)
    prepare_folder(out, table, ["cell"], "batches", versions=RUN)
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        study = BatchStudy(out, None if table else data_sets.load(data, root, progress))
        if not table:
            study.run(chosen, progress)
    entries = study.journal.read()
    lines = make_lines(entries)
    require_results(study.journal.path, model or [], list(dict.fromkeys(line.model for line in lines)))
    write_file(out / "batches.md", "\n".join([render_markdown(lines, entries), render_appendix(entries)]))
    written = record("reproduce batches", {"images": images, "threads": 1}, {"cells": entries})
    write_file(out / "batches.json", to_json(written))
    if as_json:
        print_json(written)
    print_path(console, out / "batches.md")
