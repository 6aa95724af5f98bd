"""`gradveil search`: look for policies that hide much and cost little."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gradveil import data as data_sets
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.data import Root
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Seed, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.cli.search_tables import print_status, print_summary
from gradveil.machine import find_device
from gradveil.reports import render_search_page
from gradveil.results import write_file
from gradveil.scores import SCORES
from gradveil.search import (
    BRIEFLY_TRAINED,
    JOURNAL,
    PAGE,
    RESULT,
    SAMPLE,
    SEMI_TRAINED,
    Records,
    SearchSettings,
    Validation,
    make_status,
    read_records,
    run_search,
)
from gradveil.stops import say_on_stop
from gradveil.training import TrainingSettings, train_enough

DEFAULTS = SearchSettings()
PAGE_SECONDS = 2.0

DataName = Annotated[str, typer.Option("--data", help="A name of 'gradveil data list', folder:PATH or npz:PATH.")]
ModelName = Annotated[str, typer.Option("--model", help="Model, such as lenet-relu, convnet-16 or resnet20-4.")]
CheckpointFile = Annotated[
    Path | None,
    typer.Option("--checkpoint", help="Weights of 'gradveil train' that S_pri is taken on; else they are trained."),
]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Epochs of that training instead of its own number.")]
StrategyName = Annotated[
    str, typer.Option("--strategy", help="racing, random (Algorithm 1, every score in full) or evolve.")
]
ScoreName = Annotated[str, typer.Option("--score", help=f"What is minimised: {', '.join(SCORES)}.")]
SelectName = Annotated[
    str, typer.Option("--select", help="mean, or mean-variance: the rule of the papers' journal version.")
]
Candidates = Annotated[int, typer.Option("--candidates", help="How many policies to draw: C_max.")]
Keep = Annotated[int, typer.Option("--keep", help="How many to keep: n.")]
Length = Annotated[int, typer.Option("--length", help="The most transformations of a policy: k.")]
Images = Annotated[int, typer.Option("--images", help="Test images for S_pri.")]
ThresholdText = Annotated[
    str,
    typer.Option("--accuracy-threshold", help="The least S_acc: a score, as -1.5, a quantile, as 25%, or none."),
]
Batches = Annotated[int, typer.Option("--accuracy-batches", help="Batches of 100 test images for S_acc.")]
Sample = Annotated[
    int | None,
    typer.Option("--accuracy-sample", help="Candidates that a quantile is taken over. Default: 32; random: all."),
]
QuadratureName = Annotated[
    str | None,
    typer.Option("--quadrature", help="The rule that counts for S_pri. Default: lobatto-7; random: trapezoid-21."),
]
ErrorShare = Annotated[float, typer.Option("--error", help="Share of the true best that racing may lose on average.")]
WorkerCount = Annotated[int, typer.Option("--workers", help="Processes to use; the outcome does not depend on it.")]
Validate = Annotated[int, typer.Option("--validate", help="Really attack and train with so many of the best.")]
ValidationImages = Annotated[int, typer.Option("--validate-images", help="Images that each of them is attacked on.")]
ValidationAttack = Annotated[str, typer.Option("--validate-attack", help="The attack that they are held against.")]
ValidationSteps = Annotated[
    int | None,
    typer.Option("--validate-steps", help="Steps of that attack, or of each member, instead of its own."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the search in the folder, with the same options.")]
StatusFolder = Annotated[
    Path | None, typer.Option("--status", help="Show how far the search in this folder is, and stop.")
]


def search_policies(
    data: DataName = DEFAULTS.data,
    root: Root = None,
    model: ModelName = DEFAULTS.model,
    checkpoint: CheckpointFile = None,
    epochs: Epochs = None,
    strategy: StrategyName = DEFAULTS.strategy,
    score: ScoreName = DEFAULTS.score,
    select: SelectName = DEFAULTS.select,
    candidates: Candidates = DEFAULTS.candidates,
    keep: Keep = DEFAULTS.keep,
    length: Length = DEFAULTS.length,
    images: Images = DEFAULTS.images,
    accuracy_threshold: ThresholdText = DEFAULTS.accuracy_threshold,
    accuracy_batches: Batches = DEFAULTS.accuracy_batches,
    accuracy_sample: Sample = None,
    quadrature: QuadratureName = DEFAULTS.quadrature,
    error: ErrorShare = DEFAULTS.error,
    workers: WorkerCount = min(os.cpu_count() or 1, 8),
    ray: RayAddress = None,
    validate_best: Validate = 0,
    validate_images: ValidationImages = 4,
    validate_attack: ValidationAttack = "standard",
    validate_steps: ValidationSteps = None,
    resume: Resume = False,
    status: StatusFolder = None,
    out: Out = Path("runs/search"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search for policies with a low S_pri and a sufficient S_acc; --status DIR shows one that is at work."""
    console = make_console(quiet, as_json)
    if status is not None:
        show_status(status, console, as_json)
        return
    with progress_bar(console) as show:
        loaded = data_sets.load(data, root, show)
    settings = SearchSettings(
        data=data,
        model=model,
        strategy=strategy,  # type: ignore[arg-type]  # a wrong name is refused there
        score=score,
        select=select,  # type: ignore[arg-type]
        candidates=candidates,
        keep=keep,
        length=length,
        images=images,
        accuracy_threshold=accuracy_threshold,
        accuracy_batches=accuracy_batches,
        accuracy_sample=accuracy_sample,
        quadrature=quadrature,
        error=error,
        training=choose_training(data, epochs, len(loaded.train)),
        device=str(find_device(device)),
        seed=seed,
    )
    validation = Validation(validate_best, validate_attack, validate_images, validate_steps, workers)
    page = SearchPage(out)
    say_on_stop(lambda: say_what_is_kept(out))
    with progress_bar(console) as show, gather_crew(workers, ray) as crew:
        result = run_search(
            settings,
            loaded,
            out,
            workers=crew,
            resume=resume,
            overwrite=overwrite,
            checkpoint=checkpoint,
            validation=validation,
            progress=show,
            on_change=page.follow,
        )
    page.write(read_records(out))
    if as_json:
        print_json(result.record)
    print_summary(console, result.record, out)


def say_what_is_kept(folder: Path) -> str:
    """Say what a stopped search leaves: every score in its journal."""
    if (folder / RESULT).exists():
        return f"the result is kept in {folder}"
    if not (folder / JOURNAL).exists():
        return "nothing is kept: run it again"
    return f"what is done is kept in {folder}: give the same options and --resume to go on"


class SearchPage:
    """The page of a search under way, written every few seconds."""

    def __init__(self, folder: Path) -> None:
        self.path, self.written = folder / PAGE, -PAGE_SECONDS

    def follow(self, records: Records) -> None:
        """Write the page if the last one is old."""
        if time.monotonic() - self.written > PAGE_SECONDS:
            self.write(records)

    def write(self, records: Records) -> None:
        write_file(self.path, render_search_page(make_status(records)))
        self.written = time.monotonic()


def choose_training(data: str, epochs: int | None, images: int) -> TrainingSettings:
    """Choose the papers' training of a semi-trained model, with enough of a small data set, or a brief training."""
    chosen = BRIEFLY_TRAINED if data == SAMPLE else train_enough(SEMI_TRAINED, images)
    return chosen if epochs is None else replace(chosen, epochs=epochs)


def show_status(folder: Path, console: Console, as_json: bool) -> None:
    """Print how far a search is, from its journal."""
    status = make_status(read_records(folder))
    if as_json:
        leaders = [
            {"policy": one.policy, "privacy": one.privacy, "images": one.images, "accuracy": one.accuracy_score}
            for one in status.leaders
        ]
        print_json(
            {"finished": status.finished, "jobs": status.jobs, "seconds": status.seconds, "headline": status.headline}
            | {"scored": len(status.standings), "with_accuracy": status.with_accuracy, "leaders": leaders}
        )
    print_status(console, status)
