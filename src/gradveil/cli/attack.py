"""`gradveil attack`: attack single images and watch it happen."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gradveil import data as data_sets
from gradveil.attacks import STANDARD_VERSION
from gradveil.audit import Audit, AuditReport, AuditSettings, Row
from gradveil.cli.arms import find_named
from gradveil.cli.image_choice import choose_images
from gradveil.cli.options import (
    DEFAULT_MODEL,
    WHAT,
    AsJson,
    CheckpointFile,
    DataName,
    Device,
    LabelsText,
    OptionalModel,
    Out,
    Overwrite,
    Quiet,
    Root,
    Seed,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.policy_files import read_arm
from gradveil.cli.progress import progress_bar
from gradveil.client import Weights
from gradveil.data import DataSet
from gradveil.defences import Arm, build_defended
from gradveil.errors import KnowledgeError, SettingsError
from gradveil.folders import claimed_folder
from gradveil.machine import find_device
from gradveil.models import ModelSpec
from gradveil.reports import draw_losses, draw_similarities, draw_strip
from gradveil.results import PRIVATE, record, to_json, write_file
from gradveil.training import BRIEF, GivenWeights, TrainingSettings, load_given

PIECES = ("steps.png", "loss.png", "similarity.png")
AttackName = Annotated[
    str,
    typer.Option(
        "--attack",
        help="By name, such as fast, adam-cosine or standard, or your own as package.module:object.",
        rich_help_panel=WHAT,
    ),
]
Images = Annotated[
    str,
    typer.Option("--images", help="Test images: how many, or their places, as in 3,14,15.", rich_help_panel=WHAT),
]
Phase = Annotated[
    str | None,
    typer.Option("--phase", help="init: weights as they are drawn. For others, --checkpoint.", rich_help_panel=WHAT),
]
ArmName = Annotated[
    str,
    typer.Option(
        "--defence", help="An arm as in an audit: none, crop-flip, policy:X, or your own.", rich_help_panel=WHAT
    ),
]
Knows = Annotated[bool, typer.Option("--knows-defence", help="Tell the attacker what the defence is, not its draws.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of the attack, or each member, instead of its own.")]
Budget = Annotated[
    float | None, typer.Option("--budget", help="Seconds of search for one image; turned into gradients once, here.")
]
Threads = Annotated[int, typer.Option("--threads", help="Threads of torch; one is fastest for small models.")]


def attack_images(
    data: DataName = "fashion-mnist-sample",
    root: Root = None,
    model: OptionalModel = None,
    attack: AttackName = "fast",
    images: Images = "4",
    phase: Phase = None,
    checkpoint: CheckpointFile = None,
    defence: ArmName = "none",
    knows_defence: Knows = False,
    labels: LabelsText = "known",
    steps: Steps = None,
    budget: Budget = None,
    threads: Threads = 1,
    out: Out = Path("runs/attack"),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Attack single images; pictures over the steps, curves and attack.json go to the folder."""
    console = make_console(quiet, as_json)
    text = read_arm(defence)
    named = find_named([attack], [text])
    place, arm = str(find_device(device)), named.arm(text)
    with claimed_folder(out, "attack", overwrite, PIECES) as folder, progress_bar(console) as progress:
        loaded = data_sets.load(data, root, progress)
        spec, weights, name, training = choose_weights(model, phase, checkpoint, loaded, arm, seed)
        places = choose_images(images, loaded, seed)
        settings = AuditSettings(
            phases=(name,),
            attacks=(attack,),
            code=named.sources,
            images=len(places),
            places=places,
            labels=labels,  # type: ignore[arg-type]  # a wrong name is refused there
            knows_defence=knows_defence,
            steps=steps,
            budget=budget,
            training=training,
            floor_images=min(2000, len(loaded.train)),
            group=len(places),
            threads=threads,
            seed=seed,
        )
        audit = Audit(settings, data=loaded, model=spec, arms=[arm], attacks=named.attacks, weights={name: weights})
        report = audit.run(
            device=place,
            progress=lambda stage, share: progress(stage, round(100 * share), 100),
            keep_history=True,
        )
        refuse_if_unusable(report)
        result = make_record(report, data, checkpoint, place)
        write_results(folder, report, result)
    if as_json:
        print_json(result)
    console.print(make_table(report.rows))
    for file in ("steps.png", "loss.png", "similarity.png", "attack.json"):
        if (folder / file).exists():
            print_path(console, folder / file)


def choose_weights(
    model: str | None, phase: str | None, checkpoint: Path | None, data: DataSet, arm: Arm, seed: int
) -> tuple[ModelSpec, Weights, str, TrainingSettings]:
    """Draw the weights, or load them; a checkpoint brings its own model and its own loss."""
    if checkpoint is not None:
        if phase is not None:
            raise SettingsError("--phase and --checkpoint both say which weights: give one of them")
        loaded = load_given(checkpoint, model, data)
        check_model(checkpoint, loaded, arm, seed)
        return loaded.spec, loaded.weights, loaded.phase, replace(BRIEF, loss=str(loaded.loss))
    if phase not in (None, "init"):
        raise SettingsError(
            f"phase '{phase}' needs weights: give --checkpoint with a file of 'gradveil train', or init"
        )
    spec = ModelSpec(model or DEFAULT_MODEL, data.shape, data.classes, data.mean, data.std)
    return spec, build_defended(spec, arm.defences, seed).state_dict(), "init", BRIEF


def check_model(path: Path, loaded: GivenWeights, arm: Arm, seed: int) -> None:
    """Refuse an arm that makes another model than the one that was trained."""
    wanted = build_defended(loaded.spec, arm.defences, seed).state_dict()
    if {name: tensor.shape for name, tensor in wanted.items()} != {k: v.shape for k, v in loaded.weights.items()}:
        trained = ", ".join(map(str, loaded.defences)) or "none"
        raise SettingsError(
            f"{path} was trained with the defences {trained}, and under '{arm.name}' the model is another: "
            "name with --defence what changes the model"
        )


def refuse_if_unusable(report: AuditReport) -> None:
    """End in one line if the attack cannot be used on these updates."""
    if all(row.status == "refused" for row in report.rows):
        raise KnowledgeError(report.rows[0].reason)


def make_record(report: AuditReport, data: str, checkpoint: Path | None, device: str) -> dict[str, Any]:
    """Make what attack.json holds."""
    settings = report.settings
    options = {
        "data": data,
        "model": settings.model,
        "attack": settings.attacks[0],
        "steps": settings.steps,
        "budget": settings.budget,
        "gradients": settings.gradients,
        "phase": settings.phases[0],
        "checkpoint": None if checkpoint is None else checkpoint.name,
        "arm": settings.arms[0],
        "knows_defence": settings.knows_defence,
        "labels": settings.labels,
        "loss": str(settings.local.loss),
        "code": settings.code,
        "threads": settings.threads,
        "seed": settings.seed,
        "device": device,
    }
    figures = {
        "standard_version": STANDARD_VERSION,
        "attacker_needs": list(report.needs[settings.attacks[0]]),
        "notices": list(report.notices),
        "rows": [row.to_record() for row in report.rows],
    }
    return record("attack", options, figures)


def write_results(folder: Path, report: AuditReport, result: dict[str, Any]) -> None:
    """Write the pictures and, last, the record that marks the run as complete."""
    settings = report.settings
    truths = [(one.truth.original[0], one.truth.transformed[0]) for one in report.attacked]
    results = [one.reconstruction for one in report.attacked]
    title = f"{settings.attacks[0]} on {settings.model} ({settings.phases[0]}), {settings.arms[0]}"
    write_file(folder / "steps.png", draw_strip(truths, results), PRIVATE)
    if any(len(one.history) > 1 for one in results):
        named = {f"image {row.image}": one for row, one in zip(report.rows, results, strict=True)}
        write_file(folder / "loss.png", draw_losses(named, title))
        write_file(folder / "similarity.png", draw_similarities(results[0], f"{title}, image {report.rows[0].image}"))
    write_file(folder / "attack.json", to_json(result))


def make_table(rows: Sequence[Row]) -> Table:
    table = Table(title="PSNR in dB; (chance floor)", caption="T(x): what the model was fed; x: the original")
    for column in ("image", "T(x)", "x", "aligned x", "SSIM of T(x)", "label found", "seconds"):
        table.add_column(column, justify="right")
    for row in rows:
        if row.status != "ok":
            table.add_row(str(row.image), "failed", "", "", "", "", f"{row.seconds:.1f}")
            continue
        table.add_row(
            str(row.image),
            *(
                f"{score:.1f} ({floor:.1f})"
                for score, floor in (
                    (row.psnr_transformed, row.floor_transformed),
                    (row.psnr_original, row.floor_original),
                    (row.aligned_original, row.aligned_floor_original),
                )
            ),
            f"{row.ssim_transformed:.2f}",
            "yes" if row.label_found else "no",
            f"{row.seconds:.1f}",
        )
    return table
