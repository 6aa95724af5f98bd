"""`gradveil audit`: attack what a client releases, and say what it gives away."""

import math
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
    find_leaks,
    find_preset,
    is_unfinished,
    load_capsules,
    opened_work,
    read_work,
)
from gradveil.cli import audit_options as ask
from gradveil.cli.audit_table import FILES, print_report
from gradveil.cli.crews import RayAddress, gather_crew
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Run, make_console, print_json
from gradveil.cli.policy_files import read_arm
from gradveil.cli.progress import progress_bar
from gradveil.data import load
from gradveil.defences import expand_arms
from gradveil.errors import SettingsError, printable
from gradveil.folders import claimed_folder
from gradveil.machine import find_device
from gradveil.reports import draw_grid, pictures_of, record_of, to_png, write_audit
from gradveil.results import PRIVATE, record, to_json, write_file
from gradveil.training import GIVEN, load_given, train_enough
from gradveil.types import Reconstruction

LEAKS = 3
"""The exit code of a leak above --fail-above."""
UNDEFENDED = "none"
PIECES = ("work", *FILES, "pictures", "pictures.safetensors")
"""What an audit leaves that was cut short."""
OnProgress = Callable[[str, float], None]


def audit(
    preset: ask.PresetName = None,
    data: ask.DataName = None,
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
    workers: ask.Workers = min(os.cpu_count() or 1, 8),
    ray: RayAddress = None,
    resume: ask.Resume = False,
    out: Out = Path("runs/audit"),
    overwrite: Overwrite = False,
    seed: ask.SeedOrNone = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack the updates that clients release, image by image, beside the chance level."""
    stored = read_work(out) if resume else None
    base = find_preset(preset or "quick")
    if stored is not None and preset is None:
        base = AuditSettings.from_record(stored["settings"])
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
    settings = change_settings(
        base,
        given(
            data=data,
            model=model,
            **choose_arms(defence, policy, no_control),
            phases=choose_phases(phase, checkpoint),
            checkpoint=None if checkpoint is None else str(checkpoint),
            attacks=None if attack is None else tuple(attack),
            images=images,
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
        ),
    )
    check_gate(fail_above)
    if together and not capsule:
        raise SettingsError("--together is for captured rounds: name them with --capsule")
    console = make_console(quiet, as_json)
    place = str(find_device(device))
    with progress_bar(console) as show:

        def progress(stage: str, share: float) -> None:
            show(stage, round(100 * share), 100)

        if capsule:
            if budget is not None:
                raise SettingsError("a budget is measured on a model of this audit: for capsules give --steps")
            if resume:
                raise SettingsError("an audit of capsules is never resumed: leave out --resume")
            with claimed_folder(out, "audit", overwrite, PIECES):
                report, result = audit_capsules(capsule, truth, settings, model, out, place, progress, together)
        else:
            fresh = stored is None
            named = model if fresh else settings.model
            prepared = prepare(settings, named, fresh and epochs is None, fresh and loss is None)
            report, result = run_in_folder(prepared, workers, ray, out, place, progress, overwrite, stored)
    if report is None:
        entries = result["capsules"]
        console.print(
            f"{len(entries)} attacks without the truth: pictures and audit.json are in {printable(str(out))}; no score."
        )
        return
    if as_json:
        print_json(result)
    print_report(console, report, out)
    if fail_above is not None:
        fail(report, fail_above)


def given(**options: Any) -> dict[str, Any]:
    """Leave out options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def budgeted(budget: float | None, stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """Take the gradients that a budget came to when the unfinished audit was begun; they are not measured again."""
    before = {} if stored is None else stored["settings"]
    same = budget is not None and before.get("budget") == budget
    return {"budget": budget, "gradients": before["gradients"] if same else None}


def changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Change a value of settings by the options that were given; None if none was."""
    wanted = given(**changes)
    return replace(settings, **wanted) if wanted else None


def choose_arms(defences: Sequence[str] | None, policies: Sequence[str] | None, no_control: bool) -> dict[str, Any]:
    """Name the arms, the one without a defence first; `control` says that nobody asked for that one."""
    asked = expand_arms(map(read_arm, [*(defences or ()), *(f"policy:{text}" for text in policies or ())]))
    if not asked:
        return {}
    if no_control:
        return {"arms": asked, "control": False}
    others = [arm for arm in asked if arm != UNDEFENDED]
    return {"arms": (UNDEFENDED, *others), "control": UNDEFENDED not in asked}


def choose_phases(phases: Sequence[str] | None, checkpoint: Path | None) -> tuple[str, ...] | None:
    """Name the phases: with a checkpoint that of its weights, unless others are named beside it."""
    if checkpoint is None:
        return None if phases is None else tuple(phases)
    if phases is not None and GIVEN not in phases:
        raise SettingsError(f"--checkpoint is the phase '{GIVEN}': leave out --phase, or name '{GIVEN}' as well")
    return (GIVEN,) if phases is None else tuple(phases)


def prepare(settings: AuditSettings, model: str | None, enough: bool, own_loss: bool) -> Audit:
    """Load data and weights; `enough` raises too few epochs, `own_loss` takes the loss that a checkpoint names."""
    data = load(settings.data)
    if enough:
        settings = replace(settings, training=train_enough(settings.training, len(data.train)))
    if settings.checkpoint is None:
        return Audit(settings, data=data)
    given = load_given(Path(settings.checkpoint), model, data)
    if own_loss:
        settings = replace(settings, training=replace(settings.training, loss=str(given.loss)))
    return Audit(settings, data=data, model=given.spec, weights={GIVEN: given.weights})


def check_gate(fail_above: float | None) -> None:
    """Refuse a gate that makes no sense before anything is run."""
    if fail_above is not None and not 0 <= fail_above < math.inf:
        raise SettingsError(f"--fail-above {fail_above}: give a number of decibels from 0")


def run_in_folder(
    prepared: Audit,
    workers: int,
    ray: str | None,
    out: Path,
    device: str,
    progress: OnProgress,
    overwrite: bool,
    stored: Mapping[str, Any] | None,
) -> tuple[AuditReport, dict[str, Any]]:
    """Run an audit in a folder, or go on with the one there."""
    resume = stored is not None
    command_line = shlex.join(["gradveil", *sys.argv[1:]]) if stored is None else stored["command_line"]
    asked = describe_work(prepared, device, command_line)
    run = Run("audit", out, is_unfinished, PIECES)
    with gather_crew(workers, ray, prepared.settings.threads) as crew, run.folder(resume, overwrite) as folder:
        if overwrite and not resume:
            discard_work(folder)
            remove_results(folder)
        with opened_work(folder, asked, resume) as kept:
            # A node of a cluster need not see this folder; what it has trained is kept when it is done.
            models = kept.models if ray is None else None
            report = prepared.run(
                workers=crew, device=device, progress=progress, models=models, frames=FRAMES, kept=kept
            )
            return report, write_audit(folder, record_of(report, command_line), pictures_of(report))


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


def audit_capsules(
    capsules: list[Path],
    truths: list[Path] | None,
    settings: AuditSettings,
    model: str | None,
    folder: Path,
    device: str,
    progress: OnProgress,
    together: bool,
) -> tuple[AuditReport | None, dict[str, Any]]:
    """Attack captured rounds; without their truth there is no report, only pictures."""
    captured = load_capsules(
        capsules,
        load(settings.data),
        settings.attacks,
        truths=truths,
        steps=settings.steps,
        model=model if model is not None and ":" in model else None,
        seed=settings.seed,
        together=together,
    )
    captured = replace(captured, rule=settings.rule)
    if len(captured.truths) < len(captured.rounds):
        return None, write_unscored(folder, captured.attack(device, progress))
    report = captured.run(device, progress)
    line = shlex.join(["gradveil", *sys.argv[1:]])
    return report, write_audit(folder, record_of(report, line), pictures_of(report))


def write_unscored(folder: Path, results: Mapping[str, Mapping[str, Reconstruction]]) -> dict[str, Any]:
    """Write what was rebuilt of capsules without their truth: pictures and losses; nothing can be scored."""
    entries = []
    for attack, capsules in results.items():
        for capsule, one in capsules.items():
            if one.status == "ok":
                pictures = [(attack, list(one.images.cpu()))]
                write_file(folder / f"{capsule}-{attack}.png", to_png(draw_grid(pictures)), PRIVATE)
            loss = one.matching_loss if math.isfinite(one.matching_loss) else None
            entries.append(
                {
                    "capsule": capsule,
                    "attack": attack,
                    "status": one.status,
                    "reason": one.reason,
                    "matching_loss": loss,
                    "labels": one.labels.tolist(),
                }
            )
    result = record("audit", {}, {"capsules": entries})
    write_file(folder / "audit.json", to_json(result))
    return result
