"""`gradveil inspect`: look at a model from someone else before training it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from gradveil.cli.options import (
    MODEL_HELP,
    WHAT,
    AsJson,
    OptionalOut,
    Overwrite,
    Quiet,
    Root,
    Seed,
    make_console,
    print_json,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.records import keep_record
from gradveil.data import load
from gradveil.errors import CheckpointError, printable
from gradveil.inspection import LIMITS, MEASURES, Inspection, choose_images, inspect_model
from gradveil.results import record
from gradveil.training import Checkpoint, load_checkpoint, load_given

ODD = 3
SHOWN = 12

WeightsFile = Annotated[
    Path,
    typer.Argument(help="The weights: a file of 'gradveil train', or a state_dict (then with --model and --data)."),
]
OwnModel = Annotated[
    str | None, typer.Option("--model", help=f"{MODEL_HELP} Needed if it is yours.", rich_help_panel=WHAT)
]
OptionalData = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Images to try it on, as in 'gradveil data list', folder:PATH or npz:PATH. [default: the bundled sample, "
        "resized]",
        rich_help_panel=WHAT,
    ),
]
Fail = Annotated[bool, typer.Option("--fail", help=f"Exit with code {ODD} if something is odd.")]


def inspect_checkpoint(
    checkpoint: WeightsFile,
    model: OwnModel = None,
    data: OptionalData = None,
    root: Root = None,
    fail: Fail = False,
    out: OptionalOut = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Look at a model from someone else before you train it: is it planted to give images away?"""
    console = make_console(quiet, as_json)
    with progress_bar(console) as progress:
        loaded = load_weights(checkpoint, model, data, root)
        images = choose_images(loaded.spec, data, seed, root)
        found = inspect_model(loaded.build(), loaded.loss, images, seed, progress)
    settings = {"checkpoint": str(checkpoint), "model": loaded.spec.name, "data": data, "seed": seed}
    written = record("inspect", settings, found.to_record())
    if as_json:
        print_json(written)
    print_findings(console, found)
    keep_record(out, overwrite, written, console)
    if fail and found.odd:
        raise typer.Exit(ODD)


def load_weights(path: Path, model: str | None, data: str | None, root: Path | None) -> Checkpoint:
    """Load a checkpoint of ours, or weights that do not say what model they fit and what images it takes."""
    if path.with_suffix(".json").exists() or (data is None and path.suffix == ".safetensors"):
        return load_checkpoint(path, model)
    if data is None or model is None:
        raise CheckpointError(f"{path} does not say what model it fits: name it with --model, and images with --data")
    return load_given(path, model, load(data, root)).checkpoint()


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
