"""`gradveil inspect`: look at a model from someone else before training it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from gradveil.cli.options import AsJson, Quiet, Seed, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.errors import printable
from gradveil.inspection import LIMITS, MEASURES, Inspection, choose_images, inspect_model
from gradveil.results import record
from gradveil.training import load_checkpoint

ODD = 3
SHOWN = 12

CheckpointFile = Annotated[Path, typer.Argument(help="The weights: a .safetensors file with its JSON beside it.")]
ModelName = Annotated[
    str | None, typer.Option("--model", help="Your own factory, package.module:name, if the checkpoint is of it.")
]
DataName = Annotated[
    str | None, typer.Option("--data", help="Images to try it on; without them, the bundled sample, resized.")
]
Fail = Annotated[bool, typer.Option("--fail", help=f"Exit with code {ODD} if something is odd.")]


def inspect_checkpoint(
    checkpoint: CheckpointFile,
    model: ModelName = None,
    data: DataName = None,
    fail: Fail = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Look at a model from someone else before you train it: is it planted to give images away?"""
    console = make_console(quiet, as_json)
    loaded = load_checkpoint(checkpoint, model)
    with progress_bar(console) as progress:
        images = choose_images(loaded.spec, data, seed)
        found = inspect_model(loaded.build(), loaded.loss, images, seed, progress)
    if as_json:
        settings = {"checkpoint": str(checkpoint), "model": loaded.spec.name, "data": data, "seed": seed}
        print_json(record("inspect", settings, found.to_record()))
    print_findings(console, found)
    if fail and found.odd:
        raise typer.Exit(ODD)


def print_findings(console: Console, found: Inspection) -> None:
    """Print the largest value of every measure, the odd layers, and what it means."""
    table = Table("measure", "limit", "largest", Column("where", overflow="fold"), box=SIMPLE_HEAD)
    for measure in MEASURES:
        largest = found.largest(measure)
        value, where = ("–", "") if largest is None else (measure.show(largest[0]), printable(largest[1]))
        table.add_row(measure.name, measure.show(measure.limit), value, where)
    console.print(table)
    for layer in found.odd[:SHOWN]:
        console.print(f"{printable(layer.name)}: {'; '.join(layer.reasons)}", highlight=False)
    if len(found.odd) > SHOWN:
        console.print(f"and {len(found.odd) - SHOWN} more", highlight=False)
    console.print(printable(found.verdict), style="bold", highlight=False)
    console.print(LIMITS, highlight=False)
