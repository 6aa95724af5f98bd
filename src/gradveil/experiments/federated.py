"""What collaborative training reaches: which trials are run, and how one is run."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from gradveil.data import DataSet
from gradveil.defences import build_defended, parse_arm
from gradveil.errors import DivergenceError
from gradveil.federated import FederatedSettings, Participants, is_unfinished, run_federated
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.results import canonical
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings, train
from gradveil.types import LocalTraining
from gradveil.workers import Crew, Report, Shared, Workers

JOURNAL = "journal.jsonl"
SAMPLE = "fashion-mnist-sample"
SMALL, MIDDLE = "lenet-relu", "convnet-16"
BASE, HYBRID = "crop-flip", "policy:3-1-7+43-18-18"
PASSES = 12
IMAGES = 5000
RECIPE = replace(FAST, threads=1)
CLIENT_SGD = LocalTraining(epochs=1, batch_size=32, learning_rate=0.05, momentum=0.9, shuffle=True, mode="train")
"""What a client did in a round of FedAvg before its defaults were chosen here."""
REPORTED, CHOSEN_ON = 0, 1


@dataclass(frozen=True)
class CentralSettings:
    """A centralised training, as `gradveil train` runs it."""

    model: str = SMALL
    arm: str = BASE
    training: TrainingSettings = RECIPE
    data: str = SAMPLE
    seed: int = REPORTED

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "training": self.training.to_record()}


@dataclass(frozen=True)
class FederatedTrial:
    """One training; `row` and `column` say where it stands in the table of its part."""

    part: str
    row: str
    column: str
    settings: FederatedSettings | CentralSettings

    def to_record(self) -> dict[str, Any]:
        """Return what decides the result; the words of the table are not part of it."""
        kind = "federated" if isinstance(self.settings, FederatedSettings) else "centralised"
        return {"kind": kind, "settings": self.settings.to_record()}


def accuracy() -> Iterator[FederatedTrial]:
    """Two models, three ways to train, with and without the hybrid policy; the cheap ones first."""
    for model in (SMALL, MIDDLE):
        for name in ("centralised", "FedSGD", "FedAvg"):
            for arm in (BASE, HYBRID):
                yield FederatedTrial("accuracy", f"{model}, {arm}", name, make_settings(name, model, arm))


def make_settings(name: str, model: str, arm: str) -> FederatedSettings | CentralSettings:
    """Return the settings of a way to train, with the defaults of its command."""
    if name == "centralised":
        return CentralSettings(model, arm)
    algorithm = "fedavg" if name == "FedAvg" else "fedsgd"
    return FederatedSettings(model=model, arm=arm, algorithm=algorithm, training=RECIPE)  # type: ignore[arg-type]


def fedavg(local: LocalTraining, seed: int, clients: int = 10, momentum: float = 0.0) -> FederatedSettings:
    """Return a FedAvg of `lenet-relu` with so many rounds that every image is seen as often as in the recipe."""
    used = IMAGES // clients if local.epochs else (local.steps or 0) * local.size_of(IMAGES // clients)
    rounds = round(PASSES * IMAGES / (clients * used))
    return FederatedSettings(
        model=SMALL,
        clients=clients,
        algorithm="fedavg",
        rounds=rounds,
        local=local,
        server_momentum=momentum,
        training=RECIPE,
        seed=seed,
    )


def central_sgd(batch_size: int, learning_rate: float = CLIENT_SGD.learning_rate) -> CentralSettings:
    """Return a centralised training by SGD as the clients took it: no warm-up, the rate falls linearly."""
    return CentralSettings(
        training=replace(
            RECIPE, batch_size=batch_size, learning_rate=learning_rate, muon=0.0, weight_decay=0.0, warm_up=0.0
        )
    )


def gap() -> Iterator[FederatedTrial]:
    """Take FedAvg apart: every image is seen as often as in centralised training, and one thing changes at a time."""
    part, seed = "gap", REPORTED
    sgd, muon = CLIENT_SGD, replace(CLIENT_SGD, optimiser="muon", learning_rate=0.1)
    steps = {count: replace(sgd, epochs=None, steps=count) for count in (1, 2, 5)}
    yield FederatedTrial(part, "10 clients, one epoch a round", "SGD", fedavg(sgd, seed))
    yield FederatedTrial(part, "10 clients, one epoch a round", "Muon", fedavg(muon, seed))
    yield FederatedTrial(part, "centralised, batches of 64", "Muon", CentralSettings())
    yield FederatedTrial(part, "centralised, batches of 32", "SGD", central_sgd(32))
    yield FederatedTrial(
        part, "centralised, batches of 32", "Muon", CentralSettings(training=replace(RECIPE, batch_size=32))
    )
    yield FederatedTrial(part, "1 client, one epoch a round", "SGD", fedavg(sgd, seed, clients=1))
    yield FederatedTrial(part, "1 client, one epoch a round", "Muon", fedavg(muon, seed, clients=1))
    yield FederatedTrial(part, "1 client, 16 steps a round", "SGD", fedavg(of_steps(sgd, 16), seed, clients=1))
    yield FederatedTrial(part, "1 client, 16 steps a round", "Muon", fedavg(of_steps(muon, 16), seed, clients=1))
    yield FederatedTrial(part, "centralised, batches of 320", "SGD", central_sgd(320))
    yield FederatedTrial(
        part, "centralised, batches of 320", "Muon", CentralSettings(training=replace(RECIPE, batch_size=320))
    )
    for count in (5, 2, 1):
        row = f"10 clients, {count} step{'s' if count > 1 else ''} a round"
        yield FederatedTrial(part, row, "SGD", fedavg(steps[count], seed))
        yield FederatedTrial(part, row, "Muon", fedavg(of_steps(muon, count), seed))


def of_steps(local: LocalTraining, count: int) -> LocalTraining:
    return replace(local, epochs=None, steps=count)


def choose() -> Iterator[FederatedTrial]:
    """Settings among which FedAvg's defaults were chosen, on a seed that no other table shows."""
    yield FederatedTrial("choose", "centralised", "–", CentralSettings(seed=CHOSEN_ON))
    for optimiser, rate, batch, steps, momentum in CANDIDATES:
        local = replace(CLIENT_SGD, epochs=None, steps=steps, batch_size=batch, optimiser=optimiser, learning_rate=rate)
        row = f"{optimiser}, rate {rate:g}, batches of {batch}"
        column = f"server momentum {momentum:g}" if momentum else "no server momentum"
        yield FederatedTrial("choose", f"{row}, {steps} steps", column, fedavg(local, CHOSEN_ON, momentum=momentum))


CANDIDATES: tuple[tuple[Any, float, int, int, float], ...] = (
    *(("muon", 0.1, 8, 5, 0.0), ("muon", 0.1, 16, 5, 0.0), ("sgd", 0.05, 8, 5, 0.0), ("sgd", 0.1, 8, 5, 0.0)),
    *(("muon", 0.05, 8, 5, 0.0), ("muon", 0.1, 8, 12, 0.0), ("sgd", 0.05, 8, 12, 0.0), ("muon", 0.2, 16, 5, 0.0)),
    *(("muon", 0.1, 16, 10, 0.0), ("sgd", 0.2, 16, 5, 0.0)),
    *(("muon", 0.05, 8, 5, 0.9), ("muon", 0.03, 8, 5, 0.9), ("sgd", 0.05, 8, 5, 0.9), ("muon", 0.05, 16, 5, 0.9)),
    *(("muon", 0.05, 8, 12, 0.9), ("muon", 0.05, 8, 2, 0.9), ("muon", 0.1, 8, 2, 0.9)),
)
"""Optimiser, rate, size of a batch, steps, and momentum of the server; those with one were added after the others."""
PARTS: dict[str, Callable[[], Iterator[FederatedTrial]]] = {"accuracy": accuracy, "gap": gap, "choose": choose}


@dataclass(eq=False)
class FederatedStudy:
    """A folder with a journal; every training is run once, and one that was cut short goes on."""

    folder: Path
    data: DataSet | None
    crew: Crew = field(default_factory=lambda: Workers(1))

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / JOURNAL)

    def run(self, trials: Sequence[FederatedTrial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have."""
        if self.data is None:
            return
        shared = self.crew.share(self.data)
        items = [
            WorkItem(
                {"trial": trial.to_record()},
                TrialJob(trial.settings, shared, self.folder / "runs" / name_run(trial)),
                f"{trial.row}, {trial.column}",
                {DivergenceError: "diverged"},
            )
            for trial in trials
        ]
        run_missing(self.journal, items, self.crew, progress, "trials", identify)


def identify(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides the result of a trial: the first version had no momentum of the server.

    With FedSGD no client trains, so its settings decide nothing.
    """
    trial = line["trial"]
    settings = dict(trial["settings"])
    if trial["kind"] == "federated":
        settings.setdefault("server_momentum", 0.0)
    if settings.get("algorithm") == "fedsgd":
        del settings["local"], settings["server_momentum"]
    return {"kind": trial["kind"], "settings": settings}


def name_run(trial: FederatedTrial) -> str:
    return sha256(canonical(trial.to_record())).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class TrialJob:
    """Train once, wherever it runs; `folder` is where a federated run is kept until it is through."""

    settings: FederatedSettings | CentralSettings
    data: Shared[DataSet]
    folder: Path

    def run(self, report: Report) -> dict[str, Any]:
        """Return what the journal holds of a trial."""
        if isinstance(self.settings, CentralSettings):
            return self.train_alone(self.settings, report)
        return self.train_together(self.settings, report)

    def train_alone(self, settings: CentralSettings, report: Report) -> dict[str, Any]:
        data, defences = self.data.get(), parse_arm(settings.arm).defences
        spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)
        model = build_defended(spec, defences, settings.seed)
        result = train(
            model,
            data,
            settings.training,
            defences=defences,
            seed=settings.seed,
            progress=lambda now: report(now.step, now.steps),
        )
        steps = settings.training.epochs * settings.training.steps_per_epoch(len(data.train))
        return {
            "test_accuracy": result.test_accuracy,
            "seconds": result.seconds,
            "passes": steps * settings.training.batch_size / len(data.train),
            "steps_in_a_row": steps,
            "curve": [[point.epoch, point.test_accuracy] for point in result.curves],
        }

    def train_together(self, settings: FederatedSettings, report: Report) -> dict[str, Any]:
        data = self.data.get()
        result = run_federated(
            settings,
            data,
            self.folder,
            resume=is_unfinished(self.folder),
            progress=lambda outcome, rounds: report(outcome.round, rounds),
        )
        shutil.rmtree(self.folder)
        participants, rounds = Participants(settings, data), len(result.rounds)
        used = sum(participants.count_uses(len(share)) for share in participants.shares)
        steps = settings.works.count_steps(len(participants.shares[0])) or 1
        tested = [[one.round, one.test_accuracy] for one in result.rounds if one.test_accuracy is not None]
        return {
            "test_accuracy": result.test_accuracy,
            "seconds": result.seconds,
            "passes": rounds * used / len(data.train),
            "rounds": rounds,
            "steps_in_a_row": rounds * steps,
            "dropped": sum(len(one.dropped) for one in result.rounds),
            "curve": tested[:: max(1, len(tested) // 10)],
        }
