"""`gradveil audit`: attack what a client releases, and say what it gives away."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gradveil.audit import DEFAULT_ARMS, Audit, AuditReport, AuditSettings, Summary, headline, load_capsules
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Seed, make_console, print_json
from gradveil.cli.policy_files import read_arm
from gradveil.cli.progress import progress_bar
from gradveil.data import load
from gradveil.defences import expand_arms
from gradveil.machine import find_device
from gradveil.reports import draw_grid, draw_pictures, render_audit_page, render_csv, to_png
from gradveil.results import claimed_folder, record, to_json, write_file
from gradveil.training import BRIEF
from gradveil.types import ONE_GRADIENT, LocalTraining, Reconstruction

DEFAULTS = AuditSettings()
DataName = Annotated[str, typer.Option("--data", help="Data set; see `gradveil data list`.")]
ModelName = Annotated[str, typer.Option("--model", help="Model, such as lenet-relu, convnet-16 or resnet20-4.")]
Defences = Annotated[
    list[str] | None,
    typer.Option(
        "--defence",
        help="An arm: none, crop-flip, or defences such as policy:3-1-7,gaussian:1e-3. Repeat for more arms.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", help="Short for --defence policy:X; X may be the policies.json of a search."),
]
Phases = Annotated[
    list[str] | None, typer.Option("--phase", help="init, step-N, epoch-N or final. Repeat for more phases.")
]
Attacks = Annotated[list[str] | None, typer.Option("--attack", help="Attack by name. Repeat for more attacks.")]
Images = Annotated[int, typer.Option("--images", help="How many test images to attack.")]
Labels = Annotated[str, typer.Option("--labels", help="known: the attacker is told the labels; hidden: it is not.")]
KnowsDefence = Annotated[
    bool, typer.Option("--knows-defence", help="Tell the attacker the arm's defences, though never their draws.")
]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of the attack, or each member, instead of its own.")]
Epochs = Annotated[int, typer.Option("--epochs", help="Epochs of the training before the later phases.")]
Participants = Annotated[
    int, typer.Option("--participants", help="Attack the mean of so many clients' updates, as secure aggregation does.")
]
ImagesPerClient = Annotated[
    int, typer.Option("--images-per-client", help="Images that a client has; they go into one update.")
]
LocalSteps = Annotated[
    int | None, typer.Option("--local-steps", help="Steps that a client takes before it releases its weight change.")
]
LocalEpochs = Annotated[
    int | None, typer.Option("--local-epochs", help="Passes over its images that a client makes, instead of steps.")
]
LocalBatchSize = Annotated[
    int | None, typer.Option("--local-batch-size", help="Images of a local step; all that the client has unless given.")
]
LocalRate = Annotated[float, typer.Option("--local-learning-rate", help="Learning rate of local steps.")]
LocalMomentum = Annotated[float, typer.Option("--local-momentum", help="Momentum of local steps with sgd.")]
LocalOptimiser = Annotated[str, typer.Option("--local-optimiser", help="sgd, adam or muon (the fast recipe's).")]
Shuffle = Annotated[bool, typer.Option("--local-shuffle", help="Take the images in a new random order at every pass.")]
ModeName = Annotated[
    str, typer.Option("--mode", help="Batch normalisation and dropout as in eval (a diagnostic) or as in train.")
]
Capsules = Annotated[
    list[Path] | None,
    typer.Option("--capsule", help="Attack a captured round instead, a file of capsules/. Repeat for more."),
]
Truths = Annotated[
    list[Path] | None, typer.Option("--truth", help="The truth part of a capsule that does not lie beside it.")
]
Workers = Annotated[int, typer.Option("--workers", help="Processes to use; the figures do not depend on it.")]


def audit(
    data: DataName = DEFAULTS.data,
    model: ModelName = DEFAULTS.model,
    defence: Defences = None,
    policy: Policies = None,
    phase: Phases = None,
    attack: Attacks = None,
    images: Images = DEFAULTS.images,
    labels: Labels = DEFAULTS.labels,
    knows_defence: KnowsDefence = False,
    steps: Steps = None,
    epochs: Epochs = BRIEF.epochs,
    participants: Participants = 1,
    images_per_client: ImagesPerClient = 1,
    local_steps: LocalSteps = None,
    local_epochs: LocalEpochs = None,
    local_batch_size: LocalBatchSize = None,
    local_learning_rate: LocalRate = ONE_GRADIENT.learning_rate,
    local_momentum: LocalMomentum = ONE_GRADIENT.momentum,
    local_optimiser: LocalOptimiser = ONE_GRADIENT.optimiser,
    local_shuffle: Shuffle = False,
    mode: ModeName = ONE_GRADIENT.mode,
    capsule: Capsules = None,
    truth: Truths = None,
    workers: Workers = min(os.cpu_count() or 1, 8),
    out: Out = Path("runs/audit"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack the updates that clients release, image by image, beside the chance level."""
    local = LocalTraining(
        local_steps,
        local_epochs,
        local_batch_size,
        local_optimiser,  # type: ignore[arg-type]  # a wrong name is refused there
        local_learning_rate,
        local_momentum,
        shuffle=local_shuffle,
        mode=mode,  # type: ignore[arg-type]
    )
    settings = AuditSettings(
        data=data,
        model=model,
        arms=expand_arms(map(read_arm, [*(defence or ()), *(f"policy:{text}" for text in policy or ())]))
        or DEFAULT_ARMS,
        phases=tuple(phase or DEFAULTS.phases),
        attacks=tuple(attack or DEFAULTS.attacks),
        images=images,
        labels=labels,  # type: ignore[arg-type]
        knows_defence=knows_defence,
        steps=steps,
        training=replace(BRIEF, epochs=epochs),
        participants=participants,
        images_per_client=images_per_client,
        local=local,
        seed=seed,
    )
    console = make_console(quiet, as_json)
    place = str(find_device(device))
    with claimed_folder(out, "audit", overwrite) as folder, progress_bar(console) as show:

        def progress(stage: str, share: float) -> None:
            show(stage, round(100 * share), 100)

        if capsule:
            captured = load_capsules(
                capsule,
                load(data),
                settings.attacks,
                truths=truth,
                steps=steps,
                model=model if ":" in model else None,
                seed=seed,
            )
            if len(captured.truths) < len(captured.rounds):
                write_unscored(folder, captured.attack(place, progress), console)
                return
            report = captured.run(place, progress)
        else:
            report = Audit(settings).run(workers=workers, device=place, progress=progress)
        result = record("audit", report.settings.to_record(), report.to_figures())
        write_results(folder, report, result)
    if as_json:
        print_json(result)
    print_report(console, report, folder)


def write_results(folder: Path, report: AuditReport, result: dict[str, Any]) -> None:
    """Write the page, the table, the pictures and, last, the record that marks the run as complete."""
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    for stale in pictures.glob("*.png"):
        stale.unlink()
    for name, content in draw_pictures(report).items():
        write_file(pictures / name, content)
    write_file(folder / "report.html", render_audit_page(report, result))
    write_file(folder / "audit.csv", render_csv(report.rows))
    write_file(folder / "audit.json", to_json(result))


def write_unscored(folder: Path, results: Mapping[str, Mapping[str, Reconstruction]], console: Console) -> None:
    """Write what was rebuilt of capsules without their truth: pictures and losses; nothing can be scored."""
    entries = []
    for attack, capsules in results.items():
        for capsule, one in capsules.items():
            if one.status == "ok":
                pictures = [(attack, list(one.images.cpu()))]
                write_file(folder / f"{capsule}-{attack}.png", to_png(draw_grid(pictures)))
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
    write_file(folder / "audit.json", to_json(record("audit", {}, {"capsules": entries})))
    console.print(f"{len(entries)} attacks without the truth: pictures and audit.json are in {folder}; no score.")


def print_report(console: Console, report: AuditReport, folder: Path) -> None:
    console.print(make_table(report.summaries))
    for pooled in report.pooled:
        mean = pooled.advantage.text(signed=True)
        console.print(f"{pooled.phase}, {pooled.attack}: advantage {mean} dB over {pooled.policies} random policies")
    for arm, notes in report.arms.items():
        for line in notes.lines():
            console.print(f"{arm}: {line}", highlight=False, markup=False)
    console.print(f"[bold]{headline(report.summaries)}[/bold]")
    for name in ("report.html", "audit.json", "audit.csv"):
        console.print(f"{folder / name}", highlight=False, soft_wrap=True)


def make_table(summaries: Sequence[Summary]) -> Table:
    """Lay out one entry per arm, phase and attack; it fits 80 columns."""
    table = Table(
        title="PSNR in dB, mean ± 95% interval / chance floor / advantage",
        caption="T(x): what the model was fed; x: the original; aligned: x with flip, shift and lighting given away",
        box=SIMPLE_HEAD,
        show_lines=False,
        padding=(0, 1),
    )
    table.add_column("phase, arm, attack", overflow="fold")
    for column in ("T(x)", "x", "aligned x", "worst", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("finding")
    for summary in summaries:
        table.add_row(
            f"{summary.phase}\n{summary.arm}\n{summary.attack}",
            *(write_figures(summary, target) for target in ("transformed", "original", "aligned")),
            "–" if summary.worst is None else f"#{summary.worst}\n{summary.worst_advantage:+.1f}",
            str(summary.images - summary.failed) + (f"\n{summary.failed} failed" if summary.failed else ""),
            summary.finding,
            end_section=True,
        )
    return table


def write_figures(summary: Summary, target: str) -> str:
    """Write PSNR, floor and advantage, a line each."""
    if not summary.figures:
        return "–"
    score, floor, advantage = (summary.figures[f"{name}_{target}"] for name in ("psnr", "floor", "advantage"))
    return f"{score.text()}\n/ {floor.mean:.1f}\n{advantage.text(signed=True)}"
