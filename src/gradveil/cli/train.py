"""`gradveil train`: train a model as a participant would, and keep its weights at named phases."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from gradveil import data as data_sets
from gradveil.cli.data import Root
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Run, Seed, make_console, print_json
from gradveil.cli.policy_files import read_arm, read_policy
from gradveil.cli.progress import progress_bar
from gradveil.data import DataSet
from gradveil.defences import CropFlip, Defence, Guarantee, PolicyDefence, build_defended, list_edits, parse_defences
from gradveil.errors import printable
from gradveil.machine import find_device
from gradveil.models import ModelSpec
from gradveil.reports import draw_curves
from gradveil.results import record, to_json, write_file
from gradveil.rng import generator
from gradveil.training import (
    RECIPES,
    TrainingProgress,
    TrainingResult,
    TrainingSettings,
    is_unfinished,
    parse_phase,
    train,
)
from gradveil.transforms import parse_policy

SAMPLE = "fashion-mnist-sample"
PIECES = ("resume.safetensors", "init.*", "step-*.*", "epoch-*.*", "final.*", "curves.*")
"""What a training leaves that was cut short."""


class Recipe(StrEnum):
    """The named recipes, as a choice on the command line."""

    PAPER = "paper"
    FAST = "fast"


Data = Annotated[str, typer.Option("--data", help="A name of 'gradveil data list', folder:PATH or npz:PATH.")]
Model = Annotated[str, typer.Option("--model", help="A model by name, or your own as package.module:factory.")]
PolicyText = Annotated[
    str, typer.Option("--policy", help="Transform every image, e.g. by 3-1-7+43-18-18 or policies.json.")
]
Base = Annotated[bool, typer.Option("--base/--no-base", help="Random crop and flip of every image, before the policy.")]
Defences = Annotated[
    list[str] | None,
    typer.Option("--defence", help="Another defence as in an audit's arm, e.g. gaussian:1e-3; may be repeated."),
]
RecipeName = Annotated[
    Recipe | None, typer.Option("--recipe", help="Default: fast on the bundled sample, paper elsewhere.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Default: the recipe's.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Default: the recipe's.")]
LearningRate = Annotated[float | None, typer.Option("--learning-rate", help="Default: the recipe's.")]
Fraction = Annotated[
    float, typer.Option("--fraction", help="Share of the training images; 0.1 for a semi-trained model.")
]
Snapshots = Annotated[
    str, typer.Option("--snapshots", help="Phases to keep: init, step-N, epoch-N, final, with commas between.")
]
TestEvery = Annotated[int, typer.Option("--test-every", help="Epochs from one test to the next.")]
Threads = Annotated[int | None, typer.Option("--threads", help="Default: as many as torch takes here.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder, with the same options.")]


def train_model(
    data: Data = SAMPLE,
    root: Root = None,
    model: Model = "convnet-16",
    policy: PolicyText = "none",
    base: Base = True,
    defence: Defences = None,
    recipe: RecipeName = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    fraction: Fraction = 1.0,
    snapshots: Snapshots = "init,final",
    test_every: TestEvery = 1,
    threads: Threads = None,
    resume: Resume = False,
    out: Out = Path("runs/train"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model; its weights at named phases, its curves and train.json go to the folder."""
    console = make_console(quiet, as_json)
    chosen = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "threads": threads}
    settings = choose_settings(data, recipe, chosen, fraction, test_every)
    phases = split_phases(snapshots)
    defences = choose_defences(base, policy, defence or [])
    place = find_device(device)
    with progress_bar(console) as loading:
        loaded = data_sets.load(data, root, loading)
    spec, network = build_model(model, loaded, seed, defences)
    with Run("train", out, is_unfinished, PIECES).folder(resume, overwrite) as folder:
        with training_bar(console) as progress:
            result = train(
                network,
                loaded,
                settings,
                defences=defences,
                seed=seed,
                phases=phases,
                device=place,
                folder=folder,
                spec=spec,
                resume=resume,
                progress=progress,
            )
        options = {"data": data, "model": model, "defences": [*map(str, defences)], "seed": seed, "device": str(place)}
        edits = list_edits(spec.build(generator(seed, "model")), network)
        written = write_results(folder, {**options, **settings.to_record()}, network, edits, result)
    if as_json:
        print_json(written)
    console.print(summary(written, folder))


def choose_settings(
    data: str, recipe: Recipe | None, chosen: dict[str, int | float | None], fraction: float, test_every: int
) -> TrainingSettings:
    """Take the recipe and put what the person chose in its place."""
    settings = RECIPES[recipe or (Recipe.FAST if data == SAMPLE else Recipe.PAPER)]
    changes: dict[str, Any] = {"threads": torch.get_num_threads()}
    changes |= {name: value for name, value in chosen.items() if value is not None}
    return replace(settings, fraction=fraction, test_every=test_every, **changes)


def split_phases(text: str) -> list[str]:
    """Read the phases, in order and once each; the end of training is always kept."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(str(parse_phase(name)) for name in (*names, "final")))


def choose_defences(base: bool, policy: str, others: Sequence[str]) -> list[Defence]:
    """Put the base augmentation first, then the policy: the order of the papers' code."""
    policies = parse_policy(read_policy(policy))
    defences: list[Defence] = [CropFlip()] if base else []
    if str(policies) != "none":
        defences.append(PolicyDefence(policies))
    return [*defences, *parse_defences(part for text in others for part in read_arm(text).split(","))]


def build_model(name: str, data: DataSet, seed: int, defences: Sequence[Defence]) -> tuple[ModelSpec, torch.nn.Module]:
    """Build the model and let the defences change it before it is trained."""
    spec = ModelSpec(name, data.shape, data.classes, data.mean, data.std)
    return spec, build_defended(spec, defences, seed)


def write_results(
    folder: Path, settings: dict[str, Any], model: torch.nn.Module, edits: Sequence[str], result: TrainingResult
) -> dict[str, Any]:
    """Write the picture of the curves and train.json; give the record."""
    figures = {
        "test_accuracy": result.test_accuracy,
        "train_loss": result.curves[-1].train_loss,
        "train_accuracy": result.curves[-1].train_accuracy,
        "seconds": result.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "model_edits": list(edits),
        "guarantee": None if result.guarantee is None else result.guarantee.to_record(),
        "snapshots": {phase: f"{phase}.safetensors" for phase in result.snapshots},
        "curves": "curves.jsonl",
    }
    title = f"{settings['model']} on {settings['data']}, {settings['recipe']} recipe, {name_defences(settings)}"
    write_file(folder / "curves.png", draw_curves({settings["model"]: result.curves}, title))
    written = record("train", settings, figures)
    write_file(folder / "train.json", to_json(written))
    return written


def name_defences(settings: dict[str, Any]) -> str:
    return ", then ".join(settings["defences"]) or "no augmentation"


def summary(written: dict[str, Any], folder: Path) -> Table:
    """Show the outcome in a few lines."""
    settings = written["settings"]
    table = Table("", Column("", overflow="fold"), show_header=False, box=None, pad_edge=False)
    table.add_row("model", f"{settings['model']} ({written['parameters']:,} parameters)")
    table.add_row("images", printable(f"{settings['data']}; {name_defences(settings)}"))
    table.add_row("training", f"{settings['recipe']} recipe, {settings['epochs']} epochs, {written['seconds']:.0f} s")
    table.add_row("loss", settings["loss"])
    for edit in written["model_edits"]:
        table.add_row("model changed", edit)
    if written["guarantee"] is not None:
        table.add_row("guarantee", str(Guarantee(**written["guarantee"])))
    table.add_row("test accuracy", f"{written['test_accuracy']:.2%}", style="bold")
    table.add_row("written to", printable(f"{folder}/ ({', '.join(written['snapshots'])}, curves.png, train.json)"))
    return table


class RateColumn(ProgressColumn):
    """Images a second; nothing while there is no estimate."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} images/s" if task.speed else "")


@contextmanager
def training_bar(console: Console) -> Iterator[Callable[[TrainingProgress], None]]:
    """Show how far training is, with its rate, the time left and the latest figures."""
    columns = (TextColumn("{task.description}"), BarColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: list[TaskID] = []

        def report(now: TrainingProgress) -> None:
            done, total = now.step * now.batch_size, now.steps * now.batch_size
            if not tasks:
                # It begins where the run is, so that a resumed one shows its true rate.
                tasks.append(bars.add_task("", total=total, completed=done))
            bars.update(tasks[0], completed=done, description=describe_progress(now))

        yield report


def describe_progress(now: TrainingProgress) -> str:
    text = f"epoch {now.epoch}/{now.epochs}"
    if now.latest is not None:
        text += f", loss {now.latest.train_loss:.3f}"
        if now.latest.test_accuracy is not None:
            text += f", test {now.latest.test_accuracy:.1%}"
    return text
