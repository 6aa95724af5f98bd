"""`gradveil data`: list, describe and download data sets."""

import time
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from gradveil import data
from gradveil.cli.options import AsJson, Quiet, Root, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.errors import printable
from gradveil.results import record
from gradveil.stops import say_on_stop

app = typer.Typer(no_args_is_help=True, help="List, describe and download data sets.")

Name = Annotated[str, typer.Argument(help="A name from 'gradveil data list', folder:PATH or npz:TRAIN,TEST.")]
Mirror = Annotated[
    str | None, typer.Option("--mirror", help="Address of a folder with the same files on another server.")
]


@app.command("list")
def list_command(root: Root = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """List the data sets and where they are on this machine."""
    paths = {name: source.find(root) for name, source in data.DATASETS.items()}
    if as_json:
        print_json(record("data list", {}, {"places": {name: path and str(path) for name, path in paths.items()}}))
        return
    table = Table("name", "what it is", Column("on this machine", overflow="fold"))
    for name, source in data.DATASETS.items():
        table.add_row(name, source.description, printable(str(paths[name] or f"no: gradveil data get {name}")))
    for form, own in data.FORMS.items():
        table.add_row(f"{form}:…", own.description, "")
    make_console(quiet, as_json).print(table)


@app.command("info")
def info_command(name: Name, root: Root = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Describe a data set: counts, shape, classes, mean and standard deviation, balance, duplicates."""
    console = make_console(quiet, as_json)
    start = time.perf_counter()
    with progress_bar(console) as progress:
        dataset = data.load(name, root, progress)
    seconds = time.perf_counter() - start
    counts = data.count_images(dataset)
    if as_json:
        print_json(record("data info", {"name": name}, make_figures(dataset, counts) | {"seconds_to_load": seconds}))
        return
    table = make_table(dataset, counts)
    table.add_row("loaded in", f"{seconds:.1f} s")
    console.print(table)


@app.command("get")
def get_command(
    name: Name, root: Root = None, mirror: Mirror = None, quiet: Quiet = False, as_json: AsJson = False
) -> None:
    """Download the official files of a data set; run again after a cut to resume."""
    console = make_console(quiet, as_json)
    say_on_stop(lambda: "what was downloaded is kept: run the same command again to go on")
    with progress_bar(console, in_bytes=True) as progress:
        folder = data.get(name, root, progress, mirror)
    if as_json:
        print_json(record("data get", {"name": name}, {"folder": str(folder)}))
    console.print(f"{name} is complete and checked: {printable(str(folder))}", soft_wrap=True)


def make_figures(dataset: data.DataSet, counts: data.Counts) -> dict[str, Any]:
    """Collect the figures of a data set for the JSON record."""
    return {
        "train_images": len(dataset.train),
        "test_images": len(dataset.test),
        "shape": list(dataset.shape),
        "classes": list(dataset.class_names),
        "mean": list(dataset.mean),
        "std": list(dataset.std),
        "train_per_class": list(counts.train_per_class),
        "test_per_class": list(counts.test_per_class),
        "test_images_in_train": counts.test_images_in_train,
        "skipped": list(dataset.skipped),
    }


def make_table(dataset: data.DataSet, counts: data.Counts) -> Table:
    """Lay out the figures of a data set for the console."""
    table = Table("", Column("", overflow="fold"), show_header=False)
    channels, height, width = dataset.shape
    table.add_row("name", printable(dataset.name))
    table.add_row("images", f"{len(dataset.train):,} for training, {len(dataset.test):,} for testing")
    table.add_row("shape", f"{channels} × {height} × {width} (channels × height × width)")
    table.add_row("classes", f"{dataset.classes}: {data.list_names(list(dataset.class_names), 5)}")
    table.add_row("mean", "  ".join(f"{value:.8f}" for value in dataset.mean))
    table.add_row("standard deviation", "  ".join(f"{value:.8f}" for value in dataset.std))
    table.add_row("training images per class", format_range(counts.train_per_class))
    table.add_row("test images per class", format_range(counts.test_per_class))
    table.add_row("test images also in training", f"{counts.test_images_in_train:,}")
    if dataset.skipped:
        table.add_row("broken images left out", f"{len(dataset.skipped):,}")
    return table


def format_range(counts: tuple[int, ...]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,} each" if low == high else f"{low:,} to {high:,}"
