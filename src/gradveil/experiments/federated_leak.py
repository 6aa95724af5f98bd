"""What a curious server rebuilds in the rounds of a training: which cells are captured and attacked, and how.

Capturing and attacking are two steps: the capsules stay in the folder, so that another attack or audit can use them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from gradveil.audit import AUDIT_VERSION, load_capsules
from gradveil.data import IMAGE_CHOICE, DataSet
from gradveil.experiments.federated import RECIPE, SMALL
from gradveil.experiments.versions import CHOICE, KEY
from gradveil.federated import FederatedSettings, find_capsules, is_unfinished, run_federated
from gradveil.journal import Journal
from gradveil.machine import threads
from gradveil.results import canonical
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.types import LocalTraining, Mode
from gradveil.workers import Crew, Report, Shared, Workers

NORMALISED = "convnet-8"
"""The smallest network with batch normalisation that learns here."""
LEAKS = "leak.jsonl"
ATTACK = "fast"
ROUNDS = (1, 200, 50)
"""The rounds that are attacked, the most telling first."""
LAST = 200
ARMS = ("none", "policy:3-1-7+43-18-18", "gaussian:1e-2,no-base", "dpsgd:noise=1.1:clip=1,no-base")
LOCAL = LocalTraining(steps=5, batch_size=8, learning_rate=0.05, shuffle=True, mode="train")
"""FedAvg as the attacker can repeat it: plain SGD, 40 images a round, each used once."""


@dataclass(frozen=True)
class LeakCell:
    """One training whose rounds are captured; the updates of the first `victims` clients are attacked."""

    update: str
    settings: FederatedSettings
    victims: int
    secure: bool = False

    def to_record(self) -> dict[str, Any]:
        """Return what decides the capsules and who is attacked."""
        return {"settings": self.settings.to_record(), "victims": self.victims, "secure": self.secure}

    @property
    def folder(self) -> str:
        """Name the folder of the capsules; how many are attacked does not change them."""
        record = {"settings": self.settings.to_record(), "secure": self.secure}
        return sha256(canonical(record)).hexdigest()[:16]


def fedsgd(model: str, arm: str, mode: Mode, batch_size: int) -> LeakCell:
    """Return a FedSGD of as many clients as make 32 images a round."""
    clients = 32 // batch_size
    settings = make_settings(model, arm, mode, clients=clients, batch_size=batch_size)
    images = "1 image" if batch_size == 1 else f"{batch_size} images"
    return LeakCell(f"FedSGD, {images}", settings, clients)


def fedavg(model: str, arm: str, mode: Mode) -> LeakCell:
    """Return a FedAvg of 5 local steps of 8 images; one update holds 40 images."""
    settings = make_settings(model, arm, mode, clients=4, algorithm="fedavg", local=replace(LOCAL, mode=mode))
    return LeakCell("FedAvg, 5 steps of 8 images", settings, 1)


def secure(model: str, mode: Mode) -> LeakCell:
    """Return a FedSGD whose server gets the mean of 10 clients with 4 images each only."""
    settings = make_settings(model, "none", mode, clients=10, batch_size=4)
    return LeakCell("SecAgg, mean of 10 × 4 images", settings, 1, secure=True)


def make_settings(model: str, arm: str, mode: Mode, **others: Any) -> FederatedSettings:
    values = {"local": replace(LOCAL, mode=mode), "server_momentum": 0.0, **others}
    return FederatedSettings(model=model, arm=arm, rounds=LAST, training=RECIPE, **values)


def cells() -> Iterator[LeakCell]:
    """List the trainings, the most telling first.

    Under DP-SGD a client of FedAvg may draw any image of its share at every step, so its update names the whole share,
    which nobody can attack: that cell is left out.
    """
    for arm in ARMS:
        yield fedsgd(SMALL, arm, "train", 1)
    yield from (fedsgd(NORMALISED, "none", mode, 1) for mode in ("train", "eval"))
    yield secure(SMALL, "train")
    yield from (fedsgd(SMALL, arm, "train", 8) for arm in ARMS)
    yield from (fedsgd(NORMALISED, "none", mode, 8) for mode in ("train", "eval"))
    yield from (fedavg(SMALL, arm, "train") for arm in ARMS[:3])
    yield from (fedavg(NORMALISED, "none", mode) for mode in ("train", "eval"))
    yield from (secure(NORMALISED, mode) for mode in ("train", "eval"))


@dataclass(frozen=True)
class LeakTrial:
    """The attack on one round of a cell."""

    cell: LeakCell
    round: int

    def key(self) -> dict[str, Any]:
        """Return the fields that identify the trial in the journal; `fast` has no version of its own."""
        versions = {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE}
        return {"leak": self.cell.to_record(), "round": self.round, "attack": ATTACK, **versions}


def trials() -> list[LeakTrial]:
    """List all attacks: the same round of every cell before the next round."""
    return [LeakTrial(cell, number) for number in ROUNDS for cell in cells()]


@dataclass(eq=False)
class LeakStudy:
    """A folder with a journal, and the captured rounds of every cell."""

    folder: Path
    data: DataSet
    crew: Crew = field(default_factory=lambda: Workers(1))

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / LEAKS)

    def run(self, chosen: Sequence[LeakTrial], progress: OnProgress) -> None:
        """Capture and attack what the journal lacks; rounds that were captured before are only attacked."""
        shared = self.crew.share(self.data)
        items = [
            WorkItem(
                trial.key(),
                LeakJob(trial, shared, self.folder / "captured" / trial.cell.folder),
                f"{trial.cell.update}, {trial.cell.settings.arm}, round {trial.round}",
            )
            for trial in chosen
        ]
        run_missing(self.journal, items, self.crew, progress, "attacked rounds")


@dataclass(frozen=True, eq=False)
class LeakJob:
    """Attack one round of a cell; the training is captured first if nobody has done so."""

    trial: LeakTrial
    data: Shared[DataSet]
    folder: Path

    def run(self, report: Report) -> dict[str, Any]:
        """Return what the journal holds of a trial."""
        capture(self.trial.cell, self.data.get(), self.folder)
        paths = find_capsules(self.folder, [self.trial.round])[: self.trial.cell.victims]
        with threads(1):
            audit = load_capsules(paths, self.data.get(), [ATTACK], seed=self.trial.cell.settings.seed)
            found = audit.run(progress=lambda _, share: report(round(100 * share), 100))
        return {
            "notices": list(found.notices),
            "summary": found.summaries[0].to_record(),
            "rows": [row.to_record() for row in found.rows],
        }


def capture(cell: LeakCell, data: DataSet, folder: Path) -> None:
    """Train and keep the capsules of the rounds that are attacked, unless they are there."""
    if (folder / "federate.json").exists():
        return
    resume = is_unfinished(folder)
    run_federated(
        cell.settings,
        data,
        folder,
        capture=sorted(ROUNDS),
        keep_truth=True,
        secure=cell.secure,
        resume=resume,
    )
