"""`gradveil reproduce table-1a`, `figure-2`, `claim-3`, `all`: the published study beside our own figures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.options import Device, DryRun, Quiet, WorkerCount, make_console, print_path
from gradveil.cli.progress import progress_bar
from gradveil.cli.study_folders import has_field, keep_others_out
from gradveil.errors import OutputError, SettingsError
from gradveil.experiments.paper import (
    ALL,
    EXPERIMENTS,
    GROUPS,
    JOURNAL,
    LEDGER,
    SCALES,
    Experiment,
    Material,
    Plan,
    Study,
    Unit,
    experiments_of,
    find_scale,
    make_plan,
    with_models,
    write_ledger_file,
    write_pages,
)
from gradveil.journal import Journal
from gradveil.machine import find_device
from gradveil.study import OnProgress

PANEL = "The study of Gao et al. (2021)"
FIELDS = ("key", "unit.kind", "versions")
ScaleName = Annotated[str, typer.Option("--scale", help=f"One of {', '.join(SCALES)}.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data-root", "--root", help="Folder that holds the data sets, instead of $GRADVEIL_DATA or the user's cache."
    ),
]
Folder = Annotated[Path, typer.Option("--out", help="Folder of the study; run again with the same one to go on.")]
TableOnly = Annotated[bool, typer.Option("--table", help="Run nothing: write the pages of what is there.")]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help=f"Where `{ALL}` writes the verdicts. [default: {LEDGER} in --out]")
]


def add_paper_study(app: typer.Typer) -> None:
    """Add a command for every experiment, and one for each group of them."""
    for name, one in EXPERIMENTS.items():
        app.command(name, help=f"{one.title}.", rich_help_panel=PANEL)(make_command(name))
    for name, members in GROUPS.items():
        text = "Every table, figure and claim, and the ledger of verdicts." if name == ALL else f"{', '.join(members)}."
        app.command(name, help=text, rich_help_panel=PANEL)(make_command(name))


def make_command(name: str) -> Callable[..., None]:
    """Make the command of one name."""

    def reproduce(
        scale: ScaleName = "smoke",
        data_root: DataRoot = None,
        workers: WorkerCount = 1,
        ray: RayAddress = None,
        device: Device = "auto",
        out: Folder = Path("runs/paper"),
        dry_run: DryRun = False,
        table: TableOnly = False,
        ledger: LedgerFile = None,
        quiet: Quiet = False,
    ) -> None:
        chosen = experiments_of(name)
        size = find_scale(scale)
        console = make_console(quiet, as_json=False)
        check_folder(out, table)
        study = Study(out, str(find_device(device)))
        groups = [one.units(size) for one in chosen]
        if dry_run:
            with progress_bar(console) as progress:
                plans = make_plans(chosen, groups, study, progress)
            print_plans(console, plans)
            return
        if not table:
            keep_others_out(out)
            with progress_bar(console) as progress, gather_crew(workers, ray) as crew:
                study.run(groups, data_root, crew, progress)
        material = Material(size, study.results(), out)
        for path in write_pages(out, chosen, material):
            print_path(console, path)
        if name == ALL or ledger is not None:
            place = out / LEDGER if ledger is None else ledger
            write_ledger_file(place, out, material)
            print_path(console, place)

    return reproduce


def check_folder(out: Path, table: bool) -> None:
    """Refuse a folder of something else, and a table of nothing."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is no folder: name the folder of a study with --out")
    journal = out / JOURNAL
    entries = Journal(journal).read()
    if any(not has_field(entry, field) for entry in entries for field in FIELDS):
        raise SettingsError(f"{journal} is of another study: name the folder of this one with --out")
    if table and not entries:
        raise SettingsError(f"{journal} holds no results for a table: name the folder of a study with --out")


def make_plans(
    chosen: Sequence[Experiment], groups: Sequence[Sequence[Unit]], study: Study, progress: OnProgress
) -> list[Plan]:
    """List what is left to run of each experiment that the ones before it do not run."""
    plans: list[Plan] = []
    seen: set[Unit] = set()
    for one, units in zip(chosen, groups, strict=True):
        missing = [unit for unit in study.missing(units) if unit not in seen]
        seen.update(missing)
        plans.append(make_plan(one.name, with_models(units), missing))
        progress("timing", len(plans), len(chosen))
    return plans


def print_plans(console: Console, plans: Sequence[Plan]) -> None:
    """Print the plans, and what they cost together."""
    shown = Table(*("experiment", "trainings", "attacks", "scores", "done or shared", "core-hours"))
    for plan in plans:
        counts = (plan.trainings, plan.attacks, plan.scores, plan.done)
        shown.add_row(plan.name, *map(str, counts), f"{plan.hours:.2f}")
    console.print(shown)
    total = sum(plan.hours for plan in plans)
    console.print(f"{total:.1f} core-hours by the speed of one thread of this machine, measured just now on noise.")
