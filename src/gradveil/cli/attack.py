"""`gradveil attack`: attack single images and watch it happen."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table

from gradveil import data as data_sets
from gradveil.attacks import STANDARD_VERSION, Analytic, Attack, find_attack, with_steps
from gradveil.audit.cells import Attacked, AttackJob, build_defended, feed
from gradveil.audit.floors import make_floors
from gradveil.audit.rows import Row, Truth, score_cell
from gradveil.cli.options import AsJson, Device, Out, Overwrite, Quiet, Seed, make_console, print_json
from gradveil.cli.policy_files import read_arm
from gradveil.cli.progress import progress_bar
from gradveil.data import DataSet
from gradveil.defences import Arm, parse_arm
from gradveil.errors import SettingsError
from gradveil.machine import find_device
from gradveil.models import ModelSpec
from gradveil.reports.attack_pictures import draw_losses, draw_similarities, draw_strip
from gradveil.results import claimed_folder, record, to_json, write_file
from gradveil.training import Checkpoint, load_checkpoint
from gradveil.training.checkpoint import Weights
from gradveil.types import Batch, to_pixels

PUBLIC_IMAGES = 500
FLOOR_IMAGES = 2000
DataName = Annotated[str, typer.Option("--data", help="A name of 'gradveil data list', folder:PATH or npz:PATH.")]
ModelName = Annotated[str, typer.Option("--model", help="Model, such as lenet-relu, convnet-16 or resnet20-4.")]
AttackName = Annotated[str, typer.Option("--attack", help="Attack by name, such as fast, adam-cosine or standard.")]
Images = Annotated[str, typer.Option("--images", help="Test images: how many of the first, or places, as in 3,14,15.")]
Phase = Annotated[
    str | None, typer.Option("--phase", help="init: weights as they are drawn. For others, --checkpoint.")
]
CheckpointFile = Annotated[
    Path | None, typer.Option("--checkpoint", help="Weights of 'gradveil train': a .safetensors file.")
]
ArmName = Annotated[str, typer.Option("--defence", help="An arm: none, crop-flip, policy:X or policy:X,no-base.")]
Knows = Annotated[bool, typer.Option("--knows-defence", help="Tell the attacker what the defence is, not its draws.")]
HideLabels = Annotated[bool, typer.Option("--hide-labels", help="Let the attacker find the labels.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of the attack, or each member, instead of its own.")]
Threads = Annotated[int, typer.Option("--threads", help="Threads of torch; one is fastest for small models.")]


@dataclass(frozen=True, eq=False)
class Scene:
    """What is attacked: data, model and weights, defence, images."""

    data: DataSet
    spec: ModelSpec
    weights: Weights
    phase: str
    arm: Arm
    images: tuple[int, ...]
    seed: int

    def truths(self) -> list[Truth]:
        """Draw what the model is fed for each image."""
        found = []
        for image in self.images:
            original, label = self.data.test.images[image : image + 1], self.data.test.labels[image : image + 1]
            others = Batch(self.data.train.images, self.data.train.labels)
            fed = feed(original, label, self.arm.defences, self.seed, self.arm.name, image, others)
            found.append(Truth(image, int(label), to_pixels(original), fed.pixels(), int(fed.labels)))
        return found


def attack_images(
    data: DataName = "fashion-mnist-sample",
    model: ModelName = "lenet-relu",
    attack: AttackName = "fast",
    images: Images = "4",
    phase: Phase = None,
    checkpoint: CheckpointFile = None,
    defence: ArmName = "none",
    knows_defence: Knows = False,
    hide_labels: HideLabels = False,
    steps: Steps = None,
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
    if threads < 1:
        raise SettingsError(f"{threads} threads: give 1 or more")
    torch.set_num_threads(threads)
    chosen, place = with_given_steps(find_attack(attack), steps), str(find_device(device))
    arm = parse_arm(read_arm(defence))
    with claimed_folder(out, "attack", overwrite) as folder:
        with progress_bar(console) as progress:
            loaded = data_sets.load(data, None, progress)
            spec, weights, name = choose_weights(model, phase, checkpoint, loaded, arm, seed)
            scene = Scene(loaded, spec, weights, name, arm, choose_images(images, len(loaded.test)), seed)
            job = make_job(scene, chosen, attack, knows_defence, not hide_labels, place)
            attacked = job.run(lambda done, total: progress(attack, done, total))
            rows = score(scene, attack, attacked, not hide_labels)
        settings = {
            "data": data,
            "model": spec.name,
            "attack": attack,
            "steps": steps,
            "phase": name,
            "checkpoint": None if checkpoint is None else checkpoint.name,
            "arm": arm.name,
            "knows_defence": knows_defence,
            "labels": "hidden" if hide_labels else "known",
            "threads": threads,
            "seed": seed,
            "device": place,
        }
        figures = {
            "standard_version": STANDARD_VERSION,
            "attacker_needs": list(chosen.needs),
            "rows": [row.to_record() for row in rows],
        }
        result = record("attack", settings, figures)
        write_results(folder, scene, attack, attacked, result)
    if as_json:
        print_json(result)
    console.print(make_table(rows))
    for file in ("steps.png", "loss.png", "similarity.png", "attack.json"):
        if (folder / file).exists():
            console.print(f"{folder / file}", highlight=False, soft_wrap=True)


def with_given_steps(attack: Attack, steps: int | None) -> Attack:
    if steps is not None and isinstance(attack, Analytic):
        raise SettingsError("--steps is for attacks that take steps: this one does not")
    return with_steps(attack, steps)


def choose_weights(
    model: str, phase: str | None, checkpoint: Path | None, data: DataSet, arm: Arm, seed: int
) -> tuple[ModelSpec, Weights, str]:
    """Draw the weights, or load them; a checkpoint brings its own model."""
    if checkpoint is not None:
        if phase is not None:
            raise SettingsError("--phase and --checkpoint both say which weights: give one of them")
        loaded = load_checkpoint(checkpoint, model if ":" in model else None)
        if loaded.spec.shape != data.shape or loaded.spec.classes != data.classes:
            raise SettingsError(
                f"{checkpoint} is for images of {loaded.spec.shape} in {loaded.spec.classes} classes, the data has "
                f"{data.shape} in {data.classes}: choose the data it was trained on"
            )
        check_model(checkpoint, loaded, arm, seed)
        return loaded.spec, loaded.weights, checkpoint.stem
    if phase not in (None, "init"):
        raise SettingsError(
            f"phase '{phase}' needs weights: give --checkpoint with a file of 'gradveil train', or init"
        )
    spec = ModelSpec(model, data.shape, data.classes, data.mean, data.std)
    return spec, build_defended(spec, arm, seed).state_dict(), "init"


def check_model(path: Path, loaded: Checkpoint, arm: Arm, seed: int) -> None:
    """Refuse an arm that makes another model than the one that was trained."""
    wanted = build_defended(loaded.spec, arm, seed).state_dict()
    if {name: tensor.shape for name, tensor in wanted.items()} != {k: v.shape for k, v in loaded.weights.items()}:
        trained = ", ".join(map(str, loaded.defences)) or "none"
        raise SettingsError(
            f"{path} was trained with the defences {trained}, and under '{arm.name}' the model is another: "
            "name with --defence what changes the model"
        )


def choose_images(text: str, count: int) -> tuple[int, ...]:
    """Read `4` as the first four images, and `3,14` or `7,` as places."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise SettingsError(f"images '{text}': give a number, or places with commas between, as in 3,14") from error
    places = tuple(numbers) if "," in text else tuple(range(numbers[0] if numbers else 0))
    if not places or len(set(places)) < len(places) or min(places) < 0 or max(places) >= count:
        raise SettingsError(f"images '{text}': give 1 to {count} images, or different places from 0 to {count - 1}")
    return places


def make_job(scene: Scene, attack: Attack, name: str, knows: bool, share_labels: bool, device: str) -> AttackJob:
    train = scene.data.train
    return AttackJob(
        scene.spec,
        scene.weights,
        tuple(truth.batch() for truth in scene.truths()),
        scene.images,
        scene.arm,
        scene.phase,
        attack,
        name,
        share_labels,
        scene.seed,
        device,
        tuple(map(str, scene.arm.defences)) if knows else (),
        Batch(train.images[:PUBLIC_IMAGES].to(device), train.labels[:PUBLIC_IMAGES].to(device)),
    )


def score(scene: Scene, attack: str, attacked: list[Attacked], labels_known: bool) -> list[Row]:
    floors = make_floors(scene.data, [scene.arm], FLOOR_IMAGES, labels_known, scene.seed, lambda _: None)
    return score_cell(scene.arm.name, scene.phase, attack, scene.truths(), attacked, floors[scene.arm.name])


def write_results(folder: Path, scene: Scene, attack: str, attacked: list[Attacked], result: dict[str, Any]) -> None:
    """Write the pictures and, last, the record that marks the run as complete."""
    truths = [(truth.original[0], truth.transformed[0]) for truth in scene.truths()]
    found = [one.reconstruction for one in attacked]
    title = f"{attack} on {scene.spec.name} ({scene.phase}), {scene.arm.name}"
    write_file(folder / "steps.png", draw_strip(truths, found))
    if any(len(one.history) > 1 for one in found):
        named = {f"image {image}": one for image, one in zip(scene.images, found, strict=True)}
        write_file(folder / "loss.png", draw_losses(named, title))
        write_file(folder / "similarity.png", draw_similarities(found[0], f"{title}, image {scene.images[0]}"))
    write_file(folder / "attack.json", to_json(result))


def make_table(rows: list[Row]) -> Table:
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
                f"{getattr(row, f'psnr_{target}'):.1f} ({getattr(row, f'floor_{target}'):.1f})"
                for target in ("transformed", "original", "aligned")
            ),
            f"{row.ssim_transformed:.2f}",
            "yes" if row.label_found else "no",
            f"{row.seconds:.1f}",
        )
    return table
