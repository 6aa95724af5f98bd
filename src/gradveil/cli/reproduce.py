"""`gradveil reproduce`: make the tables of the documentation again."""

from pathlib import Path
from typing import Annotated

import torch
import typer

from gradveil import data as data_sets
from gradveil.cli.options import AsJson, Quiet, Seed, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.errors import UnknownNameError
from gradveil.experiments.attack_tables import make_lines, render_markdown
from gradveil.experiments.attacks import COLOUR, GREY, PARTS, Study
from gradveil.results import record, to_json, write_file
from gradveil.training import FAST

app = typer.Typer(no_args_is_help=True, help="Make the tables of the documentation again.")
Parts = Annotated[list[str] | None, typer.Option("--part", help=f"One of {', '.join(PARTS)}; all unless given.")]
Folder = Annotated[Path, typer.Option("--out", help="Folder of the study; run again with the same one to go on.")]
Colour = Annotated[
    str | None, typer.Option("--colour", help="Colour images, e.g. cifar100; without them their cells are not run.")
]
Epochs = Annotated[int, typer.Option("--epochs", help="Epochs of training of the models that are attacked.")]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the table of what is there.")]


@app.command("attacks")
def attacks(
    part: Parts = None,
    colour: Colour = None,
    epochs: Epochs = FAST.epochs,
    table: TableOnly = False,
    out: Folder = Path("runs/attacks"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure how strong every attack is; a run that was stopped goes on where it was."""
    for name in part or []:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    chosen = {name: list(PARTS[name]()) for name in part or PARTS}
    console = make_console(quiet, as_json)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    with progress_bar(console) as progress:
        names = {GREY: "fashion-mnist-sample", **({COLOUR: colour} if colour else {})}
        loaded = {} if table else {key: data_sets.load(name, None, progress) for key, name in names.items()}
        study = Study(out, loaded, seed, epochs)
        if not table:
            for cells in chosen.values():
                study.run(cells, progress)
    entries = study.journal.read()
    lines = {name: make_lines(cells, entries) for name, cells in chosen.items()}
    write_file(out / "attacks.md", render_markdown(lines))
    settings = {"parts": list(chosen), "colour": colour, "epochs": epochs, "seed": seed, "threads": 1}
    result = record("reproduce attacks", settings, {"cells": entries})
    write_file(out / "attacks.json", to_json(result))
    if as_json:
        print_json(result)
    console.print(f"{out / 'attacks.md'}", highlight=False, soft_wrap=True)
