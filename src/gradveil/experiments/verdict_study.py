"""Does the verdict hold? Whole audits where there is nothing to find, and audits of leaks that are there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count, product
from pathlib import Path
from typing import Any, Literal, get_args

from gradveil.audit import Audit, AuditReport, AuditSettings
from gradveil.client import Weights
from gradveil.data import DataSet, channel_statistics, choose_public
from gradveil.defences import Arm, parse_arm
from gradveil.errors import SettingsError
from gradveil.experiments.blind_guess import BlindGuess, Guess
from gradveil.experiments.verdict_floors import FloorTrial, measure_floors
from gradveil.experiments.verdict_power import PoolTrial, attack_pool
from gradveil.experiments.versions import PRESENT, require_one_version, require_present_version
from gradveil.experiments.wrong_gradient import set_aside, swap_gradients
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import BRIEF, load_checkpoint
from gradveil.training import train as train_model
from gradveil.workers import Crew, Report, Shared, Workers

DATA = GREY, COLOUR = "sample", "colour"
MODEL = "lenet-relu"
STEPS = 20
TRAINED = 3
"""So many models are trained for each data set; the audits take turns."""
CLASSES = 10
"""Of a data set with more classes, the audits where nothing leaks take the first: each class has its candidates."""
TRAINING_IMAGES = 1000
"""The audits where nothing leaks have so many training images for floors and candidates, to save time."""
Null = Literal["wrong gradient", "noise", "dpsgd", "blind guess"]
ARMS: dict[Null, tuple[str, ...]] = {
    "wrong gradient": ("none", "policy:3-1-7+43-18-18"),
    "noise": ("gaussian:1000,no-base", "laplacian:1000"),
    "dpsgd": ("dpsgd:noise=100:clip=1,no-base", "dpsgd:noise=30:clip=1"),
    "blind guess": ("none", "policy:3-1-7+43-18-18"),
}
GUESSES = tuple(map(BlindGuess, get_args(Guess)))
IMAGES = {"quick": 8, "standard": 20, "full": 64}
"""How many images the rule of a preset may look at."""
REPEATS = {"quick": 13, "standard": 3, "full": 1}
"""How many audits there are of each configuration."""
BLIND_REPEATS = {"quick": 9, "standard": 3, "full": 1}
PARTICIPANTS = (1, 8)
DECIMALS = 6


@dataclass(frozen=True)
class NullTrial:
    """One audit in which there is nothing to find; the attacker of an odd seed's aggregate is not told the labels."""

    data: str
    null: Null
    preset: str
    participants: int
    seed: int

    @property
    def images(self) -> int:
        """The images of the preset, filled up to whole rounds."""
        return -(-IMAGES[self.preset] // self.participants) * self.participants

    @property
    def hides_labels(self) -> bool:
        return self.participants > 1 and self.seed % 2 == 1


Trial = NullTrial | PoolTrial | FloorTrial


def false_findings() -> Iterator[NullTrial]:
    """Give every audit a seed of its own: other images, other draws, another model at the start."""
    seeds = count()
    attacked: tuple[Null, ...] = ("wrong gradient", "noise", "dpsgd")
    blind: tuple[Null, ...] = ("blind guess",)
    for nulls, repeats in ((attacked, REPEATS), (blind, BLIND_REPEATS)):
        for preset, times in repeats.items():
            for _ in range(times):
                for data, null, participants in product((GREY, COLOUR), nulls, PARTICIPANTS):
                    yield NullTrial(data, null, preset, participants, next(seeds))
                # One seed is left out, so that odd and even seeds change places.
                next(seeds)


def power() -> Iterator[PoolTrial]:
    yield from (PoolTrial(GREY, seed) for seed in range(3))


def floors() -> Iterator[FloorTrial]:
    yield from (FloorTrial(data, seed) for data in (GREY, COLOUR) for seed in range(2))


PARTS: dict[str, Callable[[], Iterator[Trial]]] = {
    "false findings": false_findings,
    "power": power,
    "floors": floors,
}


@dataclass(eq=False)
class VerdictStudy:
    """A folder with a journal; every trial is run at most once by a version of the audit."""

    folder: Path
    data: dict[str, DataSet]
    steps: int = STEPS
    full_steps: int | None = None
    crew: Crew = field(default_factory=lambda: Workers(1))

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, part: str, trials: Sequence[Trial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have and whose data are at hand."""
        require_present_version(self.journal.read(), self.journal.path)
        for name in self.data:
            shared = self.crew.share(self.data_of(part, name))
            items = [
                WorkItem(
                    {"part": part, "trial": asdict(trial), **self.describe()}, self.job_of(trial, shared), str(trial)
                )
                for trial in trials
                if trial.data == name
            ]
            run_missing(self.journal, items, self.crew, progress, f"{part}, {name}")

    def data_of(self, part: str, name: str) -> DataSet:
        """Return the images of a part under a name without a path."""
        data = replace(self.data[name], name=name)
        if part != "false findings":
            return data
        few = keep_classes(data, CLASSES)
        return replace(few, train=choose_public(few, TRAINING_IMAGES, 0))

    def describe(self) -> dict[str, Any]:
        return {"steps": self.steps, "full_steps": self.full_steps, **PRESENT}

    def job_of(self, trial: Trial, data: Shared[DataSet]) -> "TrialJob":
        weights = self.weights(trial.data, trial.seed % TRAINED) if isinstance(trial, NullTrial) else {}
        return TrialJob(trial, data, weights, self.steps if isinstance(trial, NullTrial) else self.full_steps)

    def results(self, wanted: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Read all parts that have lines; refuse a journal without a part that is wanted, or of several versions."""
        entries = self.journal.read()
        if not entries or any(entry.get("part") not in PARTS for entry in entries):
            raise SettingsError(f"{self.journal.path} is no journal of 'reproduce verdict': name its folder with --out")
        require_one_version(entries, self.journal.path)
        found = {part: [entry for entry in entries if entry["part"] == part] for part in PARTS}
        missing = [part for part in wanted if not found[part]]
        if missing:
            raise SettingsError(f"{self.journal.path} has no results of {missing[0]}: no table was written")
        return {part: lines for part, lines in found.items() if lines}

    def weights(self, name: str, number: int) -> Weights:
        """Load the weights after a brief training; train first if they are not there."""
        place = self.folder / "models" / f"{name}-{number}"
        data = keep_classes(self.data[name], CLASSES)
        spec = ModelSpec(MODEL, data.shape, data.classes, data.mean, data.std)
        if not (place / "final.safetensors").exists():
            place.mkdir(parents=True, exist_ok=True)
            settings = replace(BRIEF, threads=1, fraction=min(1.0, 5000 / len(data.train)))
            train_model(
                spec.build(generator(number, "model")),
                data,
                settings,
                seed=number,
                phases=("init", "final"),
                folder=place,
                spec=spec,
            )
        return load_checkpoint(place / "final.safetensors").weights


def keep_classes(data: DataSet, count: int) -> DataSet:
    """Keep the images of the first classes."""
    if data.classes <= count:
        return data
    train, test = (split.take((split.labels < count).nonzero().flatten()) for split in (data.train, data.test))
    mean, std = channel_statistics(train.images)
    name = f"{data.name}, {count} classes"
    return DataSet(name, train, test, data.class_names[:count], mean, std)


@dataclass(frozen=True, eq=False)
class TrialJob:
    """One trial, wherever it runs."""

    trial: Trial
    data: Shared[DataSet]
    weights: Weights
    steps: int | None

    def run(self, report: Report) -> dict[str, Any]:
        """Return what the journal holds of a trial."""
        trial, data = self.trial, self.data.get()
        if isinstance(trial, FloorTrial):
            return measure_floors(trial, data)
        if isinstance(trial, PoolTrial):
            return attack_pool(trial, data, MODEL, self.steps, report)
        return audit_null(trial, data, {"final": self.weights}, self.steps, report)


def audit_null(
    trial: NullTrial, data: DataSet, weights: Mapping[str, Weights], steps: int | None, report: Report
) -> dict[str, Any]:
    """Run a whole audit in which no image leaks; whatever it finds is false."""
    rest, others = set_aside(data, trial.seed)
    arms: list[Arm] = [parse_arm(name) for name in ARMS[trial.null]]
    if trial.null == "wrong gradient":
        arms = [swap_gradients(arm, others) for arm in arms]
    blind = trial.null == "blind guess"
    settings = AuditSettings(
        # A guess does not depend on the weights.
        phases=("init",) if blind else ("init", "final"),
        images=trial.images,
        labels="hidden" if trial.hides_labels else "known",
        steps=None if blind else steps,
        participants=trial.participants,
        seed=trial.seed,
    )
    attacks = GUESSES if blind else ("fast",)
    audit = Audit(settings, data=rest, model=MODEL, arms=arms, attacks=attacks, weights={} if blind else weights)
    audited = audit.run(progress=lambda _, share: report(round(100 * share), 100))
    return {"settings": audited.settings.to_record(), "cells": list(describe_cells(audited))}


def describe_cells(audited: AuditReport) -> Iterator[Mapping[str, Any]]:
    """Write down what became of each cell, and every p-value of its images."""
    for cell, summary in zip(audited.verdict.cells, audited.summaries, strict=True):
        p_values = [row.p_value for row in cell.rows if row.p_value is not None]
        yield {
            "arm": cell.arm,
            "phase": cell.phase,
            "attack": cell.attack,
            "outcome": summary.outcome,
            "images": summary.images,
            "failed": summary.failed,
            "reached": None if summary.share is None else summary.share.reached,
            "hits": list(summary.hits),
            "unconfirmed": sum(row.hit and row.confirmed is False for row in cell.rows),
            "decided_after": summary.decided_after,
            "converged": summary.converged,
            "null": len(cell.null),
            "p_values": [round(value, DECIMALS) for value in p_values],
            "identified": sum(row.identified is True for row in cell.rows),
            "crowd": None if summary.identification is None else summary.identification.candidates,
        }
