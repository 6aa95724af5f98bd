"""`gradveil score`: what a policy hides and what it costs, without attacking or training."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.table import Table
from torch import Tensor, nn

from gradveil import data as data_sets
from gradveil.cli.image_choice import shrink
from gradveil.cli.options import (
    DEFAULT_MODEL,
    WHAT,
    AsJson,
    CheckpointFile,
    DataName,
    Device,
    OptionalModel,
    OptionalOut,
    Overwrite,
    Quiet,
    Root,
    Seed,
    make_console,
    print_json,
    print_path,
)
from gradveil.cli.progress import progress_bar
from gradveil.cli.records import keep_record
from gradveil.data import DataSet, Progress
from gradveil.errors import OutputError, SettingsError
from gradveil.losses import CrossEntropy, Loss
from gradveil.machine import find_device
from gradveil.metrics import ClusterInterval, cluster_interval, mean_interval
from gradveil.models import ModelSpec
from gradveil.reports import draw_similarity
from gradveil.results import record, write_file
from gradveil.rng import generator
from gradveil.scores import AccuracyScore, PrivacyScore, choose_accuracy_images, choose_privacy_images, count_scorable
from gradveil.training import load_given
from gradveil.transforms import PolicySet, parse_policy

NONE = "none"
POINTS = tuple(step / 20 for step in range(21))
PolicyText = Annotated[str, typer.Argument(help="A policy such as 3-1-7, a hybrid such as 3-1-7+43-18-18, or none.")]
Images = Annotated[
    int,
    typer.Option("--images", help="Test images for S_pri: how many at most; 100 in the papers.", rich_help_panel=WHAT),
]
FormName = Annotated[str, typer.Option("--form", help="GradSim: layerwise, as the papers' code, or global, as Eq. 5.")]
QuadratureName = Annotated[
    str, typer.Option("--quadrature", help="trapezoid-N, riemann-N, gauss-N, radau-N or lobatto-N.")
]
StartName = Annotated[str, typer.Option("--start", help="Where the way to the image begins: uniform or normal noise.")]
AccuracyForm = Annotated[
    str, typer.Option("--accuracy-form", help="S_acc: ours, or reference for that of the papers' code.")
]
Batches = Annotated[int, typer.Option("--batches", help="Batches of 100 test images for S_acc, if there are as many.")]
FigureFile = Annotated[
    Path | None, typer.Option("--figure", help="Draw GradSim from noise to image, with and without the policy: a PNG.")
]
Threads = Annotated[int, typer.Option("--threads", help="Threads of torch.")]


@dataclass(frozen=True, eq=False)
class PolicyScores:
    """The scores of one policy: S_pri of each image, S_acc of each batch, GradSim at `POINTS` if it is drawn."""

    policy: PolicySet
    privacy: Tensor
    accuracy: list[float]
    curves: Tensor | None

    def to_record(self, none: "PolicyScores") -> dict[str, Any]:
        return {
            "policy": str(self.policy),
            "readable": self.policy.readable,
            "privacy": asdict(to_interval(self.privacy)),
            "privacy_of_images": self.privacy.tolist(),
            "privacy_against_none": asdict(to_interval(self.privacy - none.privacy)),
            "accuracy": sum(self.accuracy) / len(self.accuracy),
            "accuracy_of_batches": self.accuracy,
        }

    def texts(self, none: "PolicyScores") -> list[str]:
        accuracy = mean_interval(self.accuracy)
        return [
            str(self.policy),
            to_interval(self.privacy).text(3),
            "" if self is none else to_interval(self.privacy - none.privacy).text(3, signed=True),
            f"{accuracy.mean:.3f}" + ("" if accuracy.std is None else f" (std {accuracy.std:.3f})"),
        ]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Both scores, and where they report how far they are."""

    privacy: PrivacyScore
    accuracy: AccuracyScore
    progress: Progress

    def score(self, policy: PolicySet, drawn: bool) -> PolicyScores:
        """Score one policy, and follow its similarity where that is wanted."""
        nodes = self.privacy.quadrature.nodes
        values = self.follow(policy, nodes)
        curves = None if not drawn else values if nodes == POINTS else self.follow(policy, POINTS)
        return PolicyScores(policy, self.privacy.area(values), self.measure(policy), curves)

    def follow(self, policy: PolicySet, points: Sequence[float]) -> Tensor:
        """Compute GradSim at some points, block by block."""
        total, size = len(self.privacy.images), self.privacy.block
        parts = []
        for first in range(0, total, size):
            places = range(first, min(first + size, total))
            parts.append(self.privacy.curves(policy, points, places))
            self.progress(f"S_pri of {policy}", places.stop, total)
        return torch.cat(parts)

    def measure(self, policy: PolicySet) -> list[float]:
        """Compute S_acc, batch by batch."""
        scores = []
        for number, one in enumerate(self.accuracy.batch_scores(policy), 1):
            scores.append(one)
            self.progress(f"S_acc of {policy}", number, len(self.accuracy.batches))
        return scores


def to_interval(values: Tensor) -> ClusterInterval:
    """Average over the images of one model; fewer than six have no interval."""
    return cluster_interval(values.tolist(), [0] * len(values))


def score_policy(
    policy: PolicyText,
    data: DataName = "fashion-mnist-sample",
    root: Root = None,
    model: OptionalModel = None,
    checkpoint: CheckpointFile = None,
    images: Images = 40,
    form: FormName = "layerwise",
    quadrature: QuadratureName = "trapezoid-21",
    start: StartName = "uniform",
    accuracy_form: AccuracyForm = "ours",
    batches: Batches = 10,
    figure: FigureFile = None,
    threads: Threads = 1,
    out: OptionalOut = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Print S_pri, lower hides more, and S_acc, higher costs less, of a policy beside those of none."""
    console = make_console(quiet, as_json)
    if threads < 1:
        raise SettingsError(f"{threads} threads: give 1 or more")
    if figure is not None and not figure.parent.is_dir():
        raise OutputError(f"cannot write {figure}: there is no folder {figure.parent}; make it first")
    torch.set_num_threads(threads)
    place, parsed = find_device(device), parse_policy(policy)
    policies = [parse_policy(NONE)] if str(parsed) == NONE else [parse_policy(NONE), parsed]
    with progress_bar(console) as progress:
        loaded = data_sets.load(data, root, progress)
        spec, trained, loss = choose_model(model, checkpoint, loaded, seed)
        chosen = choose_privacy_images(loaded, shrink(images, loaded, console.print), seed)
        privacy = PrivacyScore(
            trained.to(place),
            loaded.test.images[chosen],
            loaded.test.labels[chosen],
            form=form,  # type: ignore[arg-type]  # a wrong name is refused there
            quadrature=quadrature,
            start=start,  # type: ignore[arg-type]
            loss=loss,
            seed=seed,
        )
        scorer = Scorer(privacy, make_accuracy(spec, loaded, accuracy_form, batches, seed, place), progress)
        lines = [scorer.score(one, figure is not None) for one in policies]
    title = f"{spec.name}, {'untrained' if checkpoint is None else checkpoint.stem}, {loaded.name}, GradSim {form}"
    if figure is not None:
        write_file(
            figure, draw_similarity({str(x.policy): x.curves for x in lines if x.curves is not None}, POINTS, title)
        )
    settings = {
        "data": data,
        "model": spec.name,
        "checkpoint": None if checkpoint is None else checkpoint.name,
        "images": chosen,
        "form": form,
        "quadrature": quadrature,
        "start": start,
        "loss": str(loss),
        "accuracy_form": accuracy_form,
        "batches": len(scorer.accuracy.batches),
        "threads": threads,
        "seed": seed,
        "device": str(place),
    }
    written = record("score", settings, {"policies": [line.to_record(lines[0]) for line in lines]})
    if as_json:
        print_json(written)
    console.print(make_table(lines, scorer, title, loss))
    if checkpoint is None:
        console.print(untrained_note(data, spec.name), highlight=False, soft_wrap=True)
    if figure is not None:
        print_path(console, figure)
    keep_record(out, overwrite, written, console)


def choose_model(
    model: str | None, checkpoint: Path | None, data: DataSet, seed: int
) -> tuple[ModelSpec, nn.Module, Loss]:
    """Load the model, or draw it; a checkpoint of ours brings its own, and the loss that it was trained with."""
    if checkpoint is None:
        spec = ModelSpec(model or DEFAULT_MODEL, data.shape, data.classes, data.mean, data.std)
        return spec, spec.build(generator(seed, "model")), CrossEntropy()
    loaded = load_given(checkpoint, model, data)
    return loaded.spec, loaded.checkpoint().build(), loaded.loss


def make_accuracy(
    spec: ModelSpec, data: DataSet, form: str, batches: int, seed: int, device: torch.device
) -> AccuracyScore:
    """Make the score of a fresh model on whole batches of 100, or one batch of what there is."""
    size = min(100, count_scorable(len(data.test)))
    if batches < 1:
        raise SettingsError(f"{batches} batches: give 1 or more")
    places = choose_accuracy_images(data, seed, size, batches)
    return AccuracyScore(
        spec.build(generator(seed, "model")).to(device),
        data.test.images[places],
        data.test.labels[places],
        form=form,  # type: ignore[arg-type]
        batch=size,
        batches=len(places) // size,
        seed=seed,
    )


def make_table(lines: list[PolicyScores], scorer: Scorer, title: str, loss: Loss) -> Table:
    privacy, accuracy = scorer.privacy, scorer.accuracy
    table = Table(
        title=title,
        caption=f"S_pri: mean ± half the 95% interval, from 6 images (n = {len(privacy.images)}, "
        f"{privacy.quadrature.name}, {privacy.start} start, {loss}), lower hides more. S_acc ({accuracy.form}): "
        f"{len(accuracy.batches)} × {len(accuracy.batches[0])} images, fresh model, higher costs less.",
    )
    for column in ("policy", "S_pri", "against none", "S_acc"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for line in lines:
        table.add_row(*line.texts(lines[0]))
    return table


def untrained_note(data: str, model: str) -> str:
    return (
        "No --checkpoint: S_pri is that of an untrained model. The papers take a semi-trained one: "
        f"gradveil train --data {data} --model {model} --fraction 0.1 --epochs 50 --out runs/semi, "
        "then --checkpoint runs/semi/final.safetensors."
    )
