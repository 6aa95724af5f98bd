"""`gradveil search`: look for policies that hide much and cost little."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gradveil import data as data_sets
from gradveil.attacks import find_attack
from gradveil.cli.data import Root
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Seed, make_console, print_json
from gradveil.cli.progress import progress_bar
from gradveil.cli.search_tables import print_status, print_summary
from gradveil.data import DataSet
from gradveil.errors import OutputError, SettingsError
from gradveil.machine import find_device
from gradveil.models import factory
from gradveil.reports.search_page import render_search_page
from gradveil.results import claimed_folder, record, to_json, write_file
from gradveil.search import SearchSettings, Study, search
from gradveil.search.evaluate import SCORES
from gradveil.search.records import FILE, Records, read_records
from gradveil.search.report import make_figures, make_policies
from gradveil.search.run import Prepared, check_data, make_material, prepare, train_model, unscored
from gradveil.search.settings import BRIEFLY_TRAINED, SAMPLE, SEMI_TRAINED
from gradveil.search.status import make_status
from gradveil.search.study import only_writer, open_records
from gradveil.search.validate import plan_validation, validate
from gradveil.training import TrainingSettings, load_checkpoint
from gradveil.workers import Crew, Ray, Workers

DEFAULTS = SearchSettings()
PAGE = "index.html"
RESULT = "search.json"
MODEL = "model"
PAGE_SECONDS = 2.0
INTERRUPTED = 130

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
RayAddress = Annotated[
    str | None, typer.Option("--ray", help="HOST:PORT of a Ray cluster to use instead of --workers.")
]
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
    if ":" in model:
        # As `python -m` does: one's own factory usually lies in the folder one works in.
        sys.path.insert(0, str(Path.cwd()))
    with progress_bar(console) as show:
        loaded = data_sets.load(data, root, show)
        given = None if checkpoint is None else read_checkpoint(checkpoint, model, loaded, seed)
        settings = SearchSettings(
            data=data,
            model=model if given is None else given.spec.name,
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
            training=choose_training(data, epochs) if given is None else None,
            weights=None if given is None else given.digest,
            device=str(find_device(device)),
            seed=seed,
        )
        wanted = Wanted(validate_best, validate_images, validate_attack, validate_steps, workers)
        factory(settings.model)
        check_images(settings, loaded, wanted)
        with gather(workers, ray) as crew, search_folder(out, resume, overwrite) as folder, only_writer(folder):
            result = carry_out(settings, loaded, given, folder, resume, crew, wanted, show)
    if as_json:
        print_json(result)
    print_summary(console, result, folder)


@dataclass(frozen=True)
class Wanted:
    """How many of the best are to be tried, how, and with how many processes."""

    best: int
    images: int
    attack: str
    steps: int | None
    workers: int

    def __post_init__(self) -> None:
        find_attack(self.attack)
        if self.best < 0 or self.images < 1:
            raise SettingsError(
                f"--validate {self.best} with {self.images} images: give 0 policies or more and 1 image or more"
            )


@dataclass(eq=False)
class Page:
    """The page of a search under way, written every few seconds."""

    folder: Path
    records: Records
    show: Callable[[str, int, int], None]
    written: float = field(default=-PAGE_SECONDS)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.show(what, done, total)
        if time.monotonic() - self.written > PAGE_SECONDS:
            self.write()

    def write(self) -> None:
        write_file(self.folder / PAGE, render_search_page(make_status(self.records)))
        self.written = time.monotonic()


def carry_out(
    settings: SearchSettings,
    data: DataSet,
    given: Prepared | None,
    folder: Path,
    resume: bool,
    crew: Crew,
    wanted: Wanted,
    show: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Run the search in its folder and write what it found; gives the record."""
    plan = plan_validation(data, wanted.attack, wanted.images, wanted.steps)
    journal, records = open_records(folder, settings, resume)
    page = Page(folder, records, show)
    page.write()
    prepared = given or prepare(train_model(settings, data, folder / MODEL, page), settings.seed)
    study = Study(settings, journal, records, crew, make_material(settings, data, prepared), page)
    outcome = search(study)
    best = [trial.policy for trial in outcome.kept[: wanted.best]]
    others = unscored(settings, data)
    tried = validate(study, prepared.spec.name, best, others, plan, wanted.workers, page) if best else []
    figures = make_figures(study, outcome, tried)
    result = record("search", settings.to_record(), {**figures, "weights": prepared.digest})
    page.write()
    write_file(folder / "policies.json", to_json(make_policies(figures)))
    write_file(folder / RESULT, to_json(result))
    return result


def check_images(settings: SearchSettings, data: DataSet, wanted: Wanted) -> None:
    """Refuse to score or attack more images than there are before anything is trained."""
    left = len(unscored(settings, data).test)
    if wanted.best and wanted.images > left:
        raise SettingsError(f"--validate-images {wanted.images}: {left} test images are not scored; attack fewer")


def choose_training(data: str, epochs: int | None) -> TrainingSettings:
    """Take the papers' semi-trained model, or a brief training on the bundled sample."""
    chosen = BRIEFLY_TRAINED if data == SAMPLE else SEMI_TRAINED
    return chosen if epochs is None else replace(chosen, epochs=epochs)


def read_checkpoint(path: Path, model: str, data: DataSet, seed: int) -> Prepared:
    loaded = load_checkpoint(path, model if ":" in model else None)
    check_data(loaded, path, data)
    return prepare(loaded, seed)


def gather(workers: int, ray: str | None) -> Crew:
    return Workers(workers) if ray is None else Ray(ray)


@contextmanager
def search_folder(out: Path, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Give the folder of the search: claimed for a new one, as it is for one to resume."""
    if resume and not (out / FILE).exists():
        raise OutputError(f"{out} holds no search to resume: start one there without --resume")
    if (out / FILE).exists() and not (out / RESULT).exists() and not resume:
        raise OutputError(f"{out} holds an unfinished search: go on with --resume, or choose another with --out")
    try:
        if resume:
            yield out
            return
        with claimed_folder(out, "search", overwrite) as folder:
            clear(folder)
            yield folder
    except KeyboardInterrupt as interrupt:
        typer.echo("gradveil: interrupted; give the same options and --resume to go on", err=True)
        raise typer.Exit(INTERRUPTED) from interrupt


def clear(folder: Path) -> None:
    """Remove what an earlier search left in a folder that may be overwritten."""
    for name in (FILE, RESULT, PAGE, "policies.json"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / MODEL, ignore_errors=True)


def show_status(folder: Path, console: Console, as_json: bool) -> None:
    """Print how far a search is, from its journal."""
    found = make_status(read_records(folder))
    if as_json:
        leaders = [
            {"policy": one.policy, "privacy": one.privacy, "images": one.images, "accuracy": one.accuracy}
            for one in found.leaders
        ]
        print_json(
            {"finished": found.finished, "jobs": found.jobs, "seconds": found.seconds, "headline": found.headline}
            | {"scored": len(found.standings), "with_accuracy": found.tried, "leaders": leaders}
        )
    print_status(console, found)
