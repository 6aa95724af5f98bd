"""`gradveil train`: train a model as a participant would, and keep its weights at named phases."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.progress import ProgressColumn, Task
from rich.table import Column, Table
from rich.text import Text

from gradveil import data as data_sets
from gradveil.cli.arms import find_named, refuse_changed_models, write_arm
from gradveil.cli.options import (
    DEFAULT_MODEL,
    DEFENCE_HELP,
    WHAT,
    AsJson,
    DataName,
    Device,
    DryRun,
    ModelName,
    Out,
    Overwrite,
    PlainConsole,
    Quiet,
    Resume,
    Root,
    Seed,
    count,
    make_console,
    print_json,
)
from gradveil.cli.plans import print_plan, say_plan
from gradveil.cli.progress import progress_bar, single_bar
from gradveil.cli.runs import Run
from gradveil.data import DataSet
from gradveil.defences import Defence, Guarantee, build_defended, list_edits
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
    estimate_training,
    is_unfinished,
    parse_phase,
    phase_steps,
    train,
)

SAMPLE = "fashion-mnist-sample"
PIECES = ("resume.safetensors", "init.*", "step-*.*", "epoch-*.*", "final.*", "curves.*")
"""What a training leaves that was cut short."""


class Recipe(StrEnum):
    """The named recipes, as a choice on the command line."""

    PAPER = "paper"
    FAST = "fast"


PolicyText = Annotated[
    str,
    typer.Option(
        "--policy", help="Transform every image, e.g. by 3-1-7+43-18-18 or policies.json.", rich_help_panel=WHAT
    ),
]
Base = Annotated[bool, typer.Option("--base/--no-base", help="Random crop and flip of every image, before the policy.")]
Defences = Annotated[
    list[str] | None,
    typer.Option("--defence", help=f"{DEFENCE_HELP}; after the policy. Repeat for more.", rich_help_panel=WHAT),
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


def train_model(
    data: DataName = SAMPLE,
    root: Root = None,
    model: ModelName = DEFAULT_MODEL,
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
    resume: Resume = None,
    out: Out = Path("runs/train"),
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
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
    arm = write_arm(base, policy, defence or [])
    named = find_named([], [arm])
    refuse_changed_models(named.defences)
    defences = named.arm(arm).defences
    place = find_device(device)
    with progress_bar(console) as loading:
        loaded = data_sets.load(data, root, loading)
    spec, network = build_model(model, loaded, seed, defences)
    phase_steps(phases, settings.steps_per_epoch(len(loaded.train)), settings.epochs)
    if dry_run or not console.quiet:
        estimate = estimate_training(network, loaded, settings, defences, seed, place)
    if dry_run:
        print_plan(console, as_json, "train", estimate)
        return
    if not console.quiet:
        console.print(say_plan(estimate), highlight=False)
    with Run("train", out, is_unfinished, PIECES).folder(resume is not None, overwrite) as folder:
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
                resume=resume is not None,
                code=named.sources,
                progress=progress,
            )
        options: dict[str, Any] = {"data": data, "model": model, "arm": arm, "defences": [*map(str, defences)]}
        options |= {"code": named.sources, "seed": seed, "device": str(place)}
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
    title = f"{settings['model']} on {settings['data']}, {settings['recipe']} recipe, {settings['arm']}"
    write_file(folder / "curves.png", draw_curves({settings["model"]: result.curves}, title))
    written = record("train", settings, figures)
    write_file(folder / "train.json", to_json(written))
    return written


def summary(written: dict[str, Any], folder: Path) -> Table:
    """Show the outcome in a few lines."""
    settings = written["settings"]
    table = Table("", Column("", overflow="fold"), show_header=False, box=None, pad_edge=False)
    table.add_row("model", f"{settings['model']} ({written['parameters']:,} parameters)")
    table.add_row("images", printable(f"{settings['data']}; {settings['arm']}"))
    table.add_row(
        "training", f"{settings['recipe']} recipe, {count(settings['epochs'], 'epoch')}, {written['seconds']:.0f} s"
    )
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
def training_bar(console: PlainConsole) -> Iterator[Callable[[TrainingProgress], None]]:
    """Show how far training is, with its rate, the time left and the latest figures."""
    with single_bar(console, RateColumn()) as show:
        yield lambda now: show(describe_progress(now), now.step * now.batch_size, now.steps * now.batch_size)


def describe_progress(now: TrainingProgress) -> str:
    text = f"epoch {now.epoch}/{now.epochs}"
    if now.latest is not None:
        text += f", loss {now.latest.train_loss:.3f}"
        if now.latest.test_accuracy is not None:
            text += f", test {now.latest.test_accuracy:.1%}"
    return text
