"""`gradveil audit`: attack what a client releases, and say what it gives away."""

import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from gradveil.audit import (
    FRAMES,
    Audit,
    AuditReport,
    AuditSettings,
    change_settings,
    describe_work,
    discard_work,
    estimate_audit,
    find_leaks,
    find_preset,
    is_unfinished,
    opened_work,
    read_work,
)
from gradveil.cli import audit_options as ask
from gradveil.cli.arms import find_named
from gradveil.cli.audit_capsules import audit_capsules
from gradveil.cli.audit_request import (
    budgeted,
    changed,
    check_code,
    choose_arms,
    choose_images,
    choose_phases,
    given,
    name_code,
    prepare,
    shrink,
)
from gradveil.cli.audit_table import FILES, print_report
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.options import (
    AsJson,
    Device,
    DryRun,
    NoOriginals,
    NoPictures,
    Out,
    Overwrite,
    Quiet,
    Resume,
    Root,
    WorkerCount,
    count,
    make_console,
    print_json,
    visible,
)
from gradveil.cli.plans import print_plan, say_plan
from gradveil.cli.progress import progress_bar
from gradveil.cli.runs import Run
from gradveil.data import load
from gradveil.errors import SettingsError, printable
from gradveil.folders import claimed_folder
from gradveil.machine import find_device
from gradveil.reports import Visible, pictures_of, record_of, write_audit

LEAKS = 3
"""The exit code of a leak above --fail-above."""
PIECES = ("work", *FILES, "pictures", "pictures.safetensors")
"""What an audit leaves that was cut short."""
OnProgress = Callable[[str, float], None]


def audit(
    preset: ask.PresetName = None,
    data: ask.DataName = None,
    root: Root = None,
    model: ask.ModelName = None,
    checkpoint: ask.CheckpointFile = None,
    defence: ask.Defences = None,
    policy: ask.Policies = None,
    no_control: ask.NoControl = False,
    phase: ask.Phases = None,
    attack: ask.Attacks = None,
    images: ask.Images = None,
    all_images: ask.AllImages = False,
    labels: ask.Labels = None,
    untold: ask.Untold = False,
    steps: ask.Steps = None,
    budget: ask.Budget = None,
    epochs: ask.Epochs = None,
    loss: ask.LossName = None,
    epsilon: ask.Epsilon = None,
    delta: ask.Delta = None,
    gamma: ask.Gamma = None,
    canary: ask.Canary = None,
    fail_above: ask.FailAbove = None,
    participants: ask.Participants = None,
    images_per_client: ask.ImagesPerClient = None,
    local_steps: ask.LocalSteps = None,
    local_epochs: ask.LocalEpochs = None,
    local_batch_size: ask.LocalBatchSize = None,
    local_learning_rate: ask.LocalRate = None,
    local_momentum: ask.LocalMomentum = None,
    local_optimiser: ask.LocalOptimiser = None,
    local_shuffle: ask.Shuffle = False,
    mode: ask.ModeName = None,
    capsule: ask.Capsules = None,
    truth: ask.Truths = None,
    together: ask.Together = False,
    workers: WorkerCount = min(os.cpu_count() or 1, 8),
    ray: RayAddress = None,
    resume: Resume = None,
    out: Out = Path("runs/audit"),
    overwrite: Overwrite = False,
    no_originals: NoOriginals = False,
    no_pictures: NoPictures = False,
    dry_run: DryRun = False,
    seed: ask.SeedOrNone = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack the updates that clients release, image by image, beside the chance level."""
    stored = read_work(out) if resume is not None else None
    base = find_preset(preset or "quick")
    if stored is not None and preset is None:
        base = AuditSettings.from_record(stored["settings"])
    if stored is not None:
        check_code(out, AuditSettings.from_record(stored["settings"]), [model, *(attack or ()), *(defence or ())])
        root = Path(stored["root"]) if root is None and stored.get("root") else root
    local = {
        "steps": local_steps,
        "epochs": local_epochs,
        "batch_size": local_batch_size,
        "optimiser": local_optimiser,
        "learning_rate": local_learning_rate,
        "momentum": local_momentum,
        "shuffle": True if local_shuffle else None,
        "mode": mode,
    }
    arms = choose_arms(defence, policy, no_control)
    named = find_named(attack or base.attacks, arms.get("arms", base.arms))
    settings = change_settings(
        base,
        given(
            data=data,
            model=model,
            **arms,
            phases=choose_phases(phase, checkpoint),
            checkpoint=None if checkpoint is None else str(checkpoint),
            attacks=None if attack is None else tuple(attack),
            **choose_images(images),
            stop_early=False if all_images else None,
            labels=labels,
            knows_defence=False if untold else None,
            steps=steps,
            **budgeted(budget, stored),
            training=changed(base.training, {"epochs": epochs, "loss": loss}),
            rule=changed(base.rule, {"epsilon": epsilon, "delta": delta, "gamma": gamma}),
            canaries=canary,
            participants=participants,
            images_per_client=images_per_client,
            local=changed(base.local, local),
            seed=seed,
            code=named.sources,
        ),
    )
    check_gate(fail_above)
    if together and not capsule:
        raise SettingsError("--together is for captured rounds: name them with --capsule")
    console = make_console(quiet, as_json)
    shown = visible(no_originals, no_pictures)
    place = str(find_device(device))
    with progress_bar(console) as show:
        loaded = load(settings.data, root, show)
    if capsule:
        refuse_with_capsules(budget=budget, resume=resume, dry_run=dry_run or None)
        with progress_bar(console) as show, claimed_folder(out, "audit", overwrite, PIECES):
            report, result = audit_capsules(
                capsule, truth, settings, loaded, named, model, out, place, in_percent(show), together, shown
            )
    else:
        fresh = stored is None
        settings = shrink(settings, loaded, console.print)
        prepared = prepare(
            settings,
            loaded,
            named,
            model if fresh else settings.model,
            enough=fresh and epochs is None,
            own_loss=fresh and loss is None,
        )
        if dry_run or not (quiet or as_json):
            estimate = estimate_audit(prepared, workers)
        if dry_run:
            print_plan(console, as_json, "audit", estimate)
            return
        if not console.quiet:
            console.print(say_plan(estimate), highlight=False)
        with progress_bar(console) as show:
            request = Request(out, root, overwrite, stored, shown)
            report, result = run_in_folder(prepared, request, workers, ray, place, in_percent(show))
    if report is None:
        entries = result["capsules"]
        console.print(
            f"{count(len(entries), 'attack')} without the truth: pictures and audit.json are in "
            f"{printable(str(out))}; no score."
        )
        return
    if as_json:
        print_json(result)
    print_report(console, report, out)
    if fail_above is not None:
        fail(report, fail_above)


def in_percent(show: Callable[[str, int, int], None]) -> OnProgress:
    """Show a share of a stage as one of a hundred."""
    return lambda stage, share: show(stage, round(100 * share), 100)


def refuse_with_capsules(budget: float | None, resume: Path | None, dry_run: bool | None) -> None:
    """Refuse options that make no sense for captured rounds."""
    if budget is not None:
        raise SettingsError("a budget is measured on a model of this audit: for capsules give --steps")
    for name, value in {"--resume": resume, "--dry-run": dry_run}.items():
        if value is not None:
            raise SettingsError(f"an audit of capsules has nothing to resume or to estimate: leave out {name}")


def check_gate(fail_above: float | None) -> None:
    """Refuse a gate that makes no sense before anything is run."""
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SettingsError(f"--fail-above {fail_above}: give a number of decibels from 0")


@dataclass(frozen=True)
class Request:
    """Where an audit works, and what it was asked besides its settings; `stored` is that of the one to resume."""

    out: Path
    root: Path | None
    overwrite: bool
    stored: Mapping[str, Any] | None
    shown: Visible

    def describe(self, prepared: Audit, device: str) -> dict[str, Any]:
        """Say what the results depend on, and the two that they do not: the line and where the data lies."""
        line = shlex.join(["gradveil", *sys.argv[1:]]) if self.stored is None else self.stored["command_line"]
        return {**describe_work(prepared, device, line), "root": None if self.root is None else str(self.root)}


def run_in_folder(
    prepared: Audit, request: Request, workers: int, ray: str | None, device: str, progress: OnProgress
) -> tuple[AuditReport, dict[str, Any]]:
    """Run an audit in a folder, or go on with the one there."""
    resume, asked = request.stored is not None, request.describe(prepared, device)
    run = Run("audit", request.out, is_unfinished, PIECES, name_code(prepared.settings))
    with (
        gather_crew(workers, ray, prepared.settings.threads) as crew,
        run.folder(resume, request.overwrite) as folder,
    ):
        if request.overwrite and not resume:
            discard_work(folder)
            remove_results(folder)
        with opened_work(folder, asked, resume) as kept:
            # A node of a cluster need not see this folder; what it has trained is kept when it is done.
            models = kept.models if ray is None else None
            report = prepared.run(
                workers=crew, device=device, progress=progress, models=models, frames=FRAMES, kept=kept
            )
            record = record_of(report, asked["command_line"])
            return report, write_audit(folder, record, pictures_of(report), request.shown)


def remove_results(folder: Path) -> None:
    """Remove what an earlier audit left in a folder that may be overwritten."""
    for name in (*FILES, "pictures.safetensors"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "pictures", ignore_errors=True)


def fail(report: AuditReport, above: float) -> None:
    """Exit with 3 if the audit shows a leak above the limit."""
    leaks = find_leaks(report, above)
    if leaks:
        typer.echo(f"gradveil: a leak above {above:g} dB: {'; '.join(map(str, leaks))}", err=True)
        raise typer.Exit(LEAKS)
