"""S_pri of each of the 50 transformations alone (Gao et al., 2021, Figure 5; its replication, Figure 6)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.data import IMAGE_CHOICE, DataSet
from gradveil.defences import CropFlip
from gradveil.experiments.versions import CHOICE, choice_of
from gradveil.journal import Journal
from gradveil.losses import CrossEntropy
from gradveil.metrics import Interval, mean_interval
from gradveil.models import ModelSpec
from gradveil.reports import Bar
from gradveil.rng import generator
from gradveil.scores import PrivacyScore, choose_privacy_images, function_of
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import PAPER, Checkpoint, is_unfinished, load_given, train
from gradveil.transforms import CATALOGUE, Policy
from gradveil.workers import Report, Shared, Workers

PUBLISHED = (3, 15, 18, 26, 1)
"""The five best of both papers, in their order; the replication finds four of them on CIFAR-100."""
BEST = len(PUBLISHED)
RESAMPLES = 2000


@dataclass(frozen=True)
class SingleSettings:
    """What decides the scores, apart from the data and the weights."""

    images: int = 100
    form: str = "layerwise"
    quadrature: str = "trapezoid-21"
    start: str = "uniform"
    seed: int = 0


def single_policies() -> dict[str, Policy]:
    """List one policy for each function in the catalogue, under the function's name; identities are `none`."""
    policies: dict[str, Policy] = {}
    for index in range(len(CATALOGUE)):
        policies.setdefault(function_of(Policy((index,))), Policy((index,)))
    return {"none": Policy(())} | {name: policy for name, policy in policies.items() if name != "none"}


def entries_of(function: str) -> list[int]:
    """List the catalogue entries that compute a function.

    >>> entries_of("translateY:3")
    [24, 42, 43, 48]
    """
    return [index for index in range(len(CATALOGUE)) if function_of(Policy((index,))) == function]


@dataclass(eq=False)
class SingleTransforms:
    """A folder with a semi-trained model and a journal; every function is scored at most once."""

    folder: Path
    data: DataSet
    model: str = "resnet20-1"
    settings: SingleSettings = SingleSettings()
    checkpoint: Path | None = None
    epochs: int = 50
    fraction: float = 0.1

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def find_weights(self, progress: OnProgress) -> Path:
        """Return the checkpoint to score on; train it if none was given."""
        return self.checkpoint or self.train_model(progress)

    def run(self, path: Path, progress: OnProgress) -> dict[str, list[float]]:
        """Score what the journal lacks on the weights at `path`; returns S_pri of each image by function."""
        study = self.describe(path)
        with Workers(1) as crew:
            shared = crew.share(self.make_score(self.load(path)))
            items = [
                WorkItem({"study": study, "function": name}, SingleScoreJob(shared, policy))
                for name, policy in single_policies().items()
            ]
            run_missing(self.journal, items, crew, progress, "transformations", identify)
        return self.read(study)

    def read(self, study: Mapping[str, Any]) -> dict[str, list[float]]:
        """Read what was scored with these settings on these weights."""
        lines = [line for line in self.journal.read() if identify(line)[0] == study]
        return {line["function"]: line["scores"] for line in lines}

    def describe(self, path: Path) -> dict[str, Any]:
        """Say what decides the scores."""
        weights = hashlib.sha256(path.read_bytes()).hexdigest()
        loss = str(self.load(path).loss)
        study = {"data": self.data.name, "weights": weights, **vars(self.settings), "loss": loss}
        return {**study, CHOICE: IMAGE_CHOICE}

    def train_model(self, progress: OnProgress) -> Path:
        """Train on a tenth of the images for 50 epochs with the papers' recipe, unless that was done before."""
        place = self.folder / "model"
        path = place / "final.safetensors"
        if path.exists() and not is_unfinished(place):
            return path
        spec = ModelSpec(self.model, self.data.shape, self.data.classes, self.data.mean, self.data.std)
        training = replace(PAPER, epochs=self.epochs, fraction=self.fraction, test_every=self.epochs, threads=1)
        train(
            spec.build(generator(self.settings.seed, "model")),
            self.data,
            training,
            defences=[CropFlip()],
            seed=self.settings.seed,
            phases=("final",),
            folder=place,
            spec=spec,
            resume=is_unfinished(place),
            progress=lambda state: progress("training", state.step, state.steps),
        )
        return path

    def load(self, path: Path) -> Checkpoint:
        """Load weights for these images."""
        described = path.with_suffix(".json").exists() and ":" not in self.model
        return load_given(path, None if described else self.model, self.data).checkpoint()

    def make_score(self, checkpoint: Checkpoint) -> PrivacyScore:
        test, settings = self.data.test, self.settings
        places = choose_privacy_images(self.data, settings.images, settings.seed)
        return PrivacyScore(
            checkpoint.build(),
            test.images[places],
            test.labels[places],
            form=settings.form,  # type: ignore[arg-type]  # a wrong name is refused there
            quadrature=settings.quadrature,
            start=settings.start,  # type: ignore[arg-type]
            loss=checkpoint.loss,
            seed=settings.seed,
        )


@dataclass(frozen=True, eq=False)
class SingleScoreJob:
    """Score one policy."""

    score: Shared[PrivacyScore]
    policy: Policy

    def run(self, report: Report) -> dict[str, Any]:  # noqa: ARG002
        return {"scores": self.score.get().score(self.policy).tolist()}


def identify(line: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Tell lines apart; earlier versions named no loss and scored by plain cross-entropy."""
    return {"loss": str(CrossEntropy()), **line["study"], CHOICE: choice_of(line["study"])}, line["function"]


@dataclass(frozen=True)
class FunctionLine:
    """One function: its S_pri, that less the one of no transformation, and how sure its place among the best is."""

    function: str
    entries: tuple[int, ...]
    score: Interval
    against: Interval
    among_best: float

    @property
    def published(self) -> bool:
        return any(entry in PUBLISHED for entry in self.entries)


def make_lines(scores: Mapping[str, Sequence[float]], seed: int = 0) -> list[FunctionLine]:
    """Rank the functions, lowest S_pri first, identities left out."""
    names = [name for name in scores if name != "none"]
    table = torch.tensor([scores[name] for name in names], dtype=torch.float64)
    none = torch.tensor(scores["none"], dtype=torch.float64)
    shares = among_best(table, seed)
    lines = [
        FunctionLine(
            name,
            tuple(entries_of(name)),
            mean_interval(values.tolist()),
            mean_interval((values - none).tolist()),
            float(share),
        )
        for name, values, share in zip(names, table, shares, strict=True)
    ]
    return sorted(lines, key=lambda line: (line.score.mean, line.function))


def among_best(table: Tensor, seed: int) -> Tensor:
    """Resample the images, functions×images; return the share of times that each function is among the best five."""
    images = table.shape[1]
    draws = torch.randint(images, (RESAMPLES, images), generator=generator(seed, "resample"))
    counts = torch.zeros(RESAMPLES, images, dtype=torch.float64).scatter_add_(
        1, draws, torch.ones(draws.shape).double()
    )
    best = (counts @ table.T).topk(min(BEST, len(table)), dim=1, largest=False).indices
    return best.flatten().bincount(minlength=len(table)).double() / RESAMPLES


def make_bars(lines: Sequence[FunctionLine], none: Interval) -> list[Bar]:
    """Lay the 50 entries out in the catalogue's order, our best five marked, the published with a star."""
    best = {entry for line in lines[:BEST] for entry in line.entries}
    scores = dict.fromkeys(entries_of("none"), none) | {entry: line.score for line in lines for entry in line.entries}
    bars = []
    for entry, score in sorted(scores.items()):
        half = None if score.high is None else score.high - score.mean
        star = " *" if entry in PUBLISHED else ""
        bars.append(Bar(f"{entry} {CATALOGUE[entry]}{star}", score.mean, half, entry in best))
    return bars


def render_markdown(lines: Sequence[FunctionLine], none: Interval, study: str) -> str:
    """Write the ranking and how it compares with the published one."""
    best = lines[:BEST]
    shared = [line for line in best if line.published]
    text = [
        "# S_pri of single transformations",
        "",
        f"{study}, n = {none.count} images. Lower hides more; ± half the 95% interval over images; no transformation: "
        f"{none.text(3)}. Entries of one function have one score. The last column: in how many of {RESAMPLES:,} "
        "resamples of the images a function is among the best five.",
        "",
        f"Best five: {', '.join(str(line.entries[0]) for line in best)}. Published: "
        f"{', '.join(map(str, PUBLISHED))}. In common: {len(shared)} of {BEST}.",
        "",
        "| rank | entries | function | S_pri | against none | published | among the best five |",
        "|---|---|---|---|---|---|---|",
    ]
    for rank, line in enumerate(lines, 1):
        entries = ", ".join(map(str, line.entries))
        rank_there = [PUBLISHED.index(entry) + 1 for entry in line.entries if entry in PUBLISHED]
        there = f"{rank_there[0]}" if rank_there else ""
        text.append(
            f"| {rank} | {entries} | {line.function} | {line.score.text(3)} | {line.against.text(3, signed=True)} | "
            f"{there} | {100 * line.among_best:.0f}% |"
        )
    return "\n".join([*text, ""])
