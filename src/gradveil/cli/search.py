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
from gradveil.cli.image_choice import shrink
from gradveil.cli.options import (
    DEFAULT_MODEL,
    WHAT,
    AsJson,
    CheckpointFile,
    DataName,
    Device,
    DryRun,
    OptionalModel,
    Out,
    Overwrite,
    Quiet,
    Resume,
    Root,
    Seed,
    WorkerCount,
    make_console,
    print_json,
)
from gradveil.cli.plans import print_plan, say_plan
from gradveil.cli.progress import progress_bar
from gradveil.cli.runs import forget_request, say_how_to_resume, write_request
from gradveil.cli.search_tables import print_status, print_summary
from gradveil.folders import is_busy
from gradveil.machine import find_device
from gradveil.reports import render_search_page
from gradveil.results import write_file
from gradveil.scores import SCORES
from gradveil.search import (
    JOURNAL,
    PAGE,
    RESULT,
    Records,
    SearchSettings,
    Validation,
    choose_training,
    estimate_search,
    make_status,
    read_records,
    run_search,
)
from gradveil.stops import say_on_stop
from gradveil.training import TrainingSettings, load_given

DEFAULTS = SearchSettings()
PAGE_SECONDS = 2.0

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
Images = Annotated[int, typer.Option("--images", help="Test images for S_pri: how many at most.", rich_help_panel=WHAT)]
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
Validate = Annotated[int, typer.Option("--validate", help="Really attack and train with so many of the best.")]
ValidationImages = Annotated[int, typer.Option("--validate-images", help="Images that each of them is attacked on.")]
ValidationAttack = Annotated[str, typer.Option("--validate-attack", help="The attack that they are held against.")]
ValidationSteps = Annotated[
    int | None,
    typer.Option("--validate-steps", help="Steps of that attack, or of each member, instead of its own."),
]
StatusFolder = Annotated[
    Path | None, typer.Option("--status", help="Show how far the search in this folder is, and stop.")
]


def search_policies(
    data: DataName = DEFAULTS.data,
    root: Root = None,
    model: OptionalModel = None,
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
    resume: Resume = None,
    status: StatusFolder = None,
    out: Out = Path("runs/search"),
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    seed: Seed = 0,
    device: Device = "auto",
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
    weights = None if checkpoint is None else load_given(checkpoint, model, loaded).checkpoint()
    settings = SearchSettings(
        data=data,
        model=model or DEFAULT_MODEL,
        strategy=strategy,  # type: ignore[arg-type]  # a wrong name is refused there
        score=score,
        select=select,  # type: ignore[arg-type]
        candidates=candidates,
        keep=keep,
        length=length,
        images=shrink(images, loaded, console.print),
        accuracy_threshold=accuracy_threshold,
        accuracy_batches=accuracy_batches,
        accuracy_sample=accuracy_sample,
        quadrature=quadrature,
        error=error,
        training=change_epochs(choose_training(data, len(loaded.train)), epochs),
        device=str(find_device(device)),
        seed=seed,
    )
    validation = Validation(validate_best, validate_attack, validate_images, validate_steps, workers)
    if dry_run or not console.quiet:
        estimate = estimate_search(settings, loaded, weights, workers)
    if dry_run:
        print_plan(console, as_json, "search", estimate)
        return
    if not console.quiet:
        console.print(say_plan(estimate), highlight=False)
    page = SearchPage(out)
    say_on_stop(lambda: say_what_is_kept(out))
    with progress_bar(console) as show, gather_crew(workers, ray) as crew:
        result = run_search(
            settings,
            loaded,
            out,
            workers=crew,
            resume=resume is not None,
            overwrite=overwrite,
            checkpoint=weights,
            validation=validation,
            progress=show,
            on_change=page.follow,
        )
    forget_request(out)
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
    return f"what is done is kept in {folder}: go on with {say_how_to_resume('search', folder)}"


class SearchPage:
    """The page of a search under way, written every few seconds."""

    def __init__(self, folder: Path) -> None:
        self.path, self.written = folder / PAGE, -PAGE_SECONDS
        self.is_asked = False

    def follow(self, records: Records) -> None:
        """Write the page if the last one is old; first of all, what the search was asked."""
        if not self.is_asked:
            write_request(self.path.parent)
            self.is_asked = True
        if time.monotonic() - self.written > PAGE_SECONDS:
            self.write(records)

    def write(self, records: Records) -> None:
        write_file(self.path, render_search_page(make_status(records)))
        self.written = time.monotonic()


def change_epochs(training: TrainingSettings, epochs: int | None) -> TrainingSettings:
    return training if epochs is None else replace(training, epochs=epochs)


def show_status(folder: Path, console: Console, as_json: bool) -> None:
    """Print how far a search is, from its journal."""
    status = make_status(read_records(folder), is_busy(folder))
    stopped = not status.finished and not status.at_work
    resume = say_how_to_resume("search", folder) if stopped else None
    if as_json:
        leaders = [
            {"policy": one.policy, "privacy": one.privacy, "images": one.images, "accuracy": one.accuracy_score}
            for one in status.leaders
        ]
        print_json(
            {
                "finished": status.finished,
                "at_work": status.at_work,
                "resume": resume,
                "jobs": status.jobs,
                "seconds": status.seconds,
                "headline": status.headline,
            }
            | {"scored": len(status.standings), "with_accuracy": status.with_accuracy, "leaders": leaders}
        )
    print_status(console, status)
    if resume is not None:
        console.print(f"Go on with: {resume}", highlight=False, soft_wrap=True)
