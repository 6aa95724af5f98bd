"""What an attacker gains by being told the defence: which trials are run, and how one is run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gradveil.attacks import Attack, find_attack
from gradveil.audit import Audit, AuditReport, AuditSettings
from gradveil.data import DataSet, choose_private, choose_public
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings
from gradveil.workers import Report, Workers

PHASES = ("init", "final")
ATTACKS = ("fast", "learned")
ARMS = ("none", "percentile,no-base", "oasis,no-base", "censor,no-base")
SEED = 3
"""Other tables use seeds 0 to 2; settings were chosen on training images with seed 100."""
TRAINING = replace(FAST, epochs=6, test_every=6, threads=1)
KEPT = (
    *("image", "label", "status", "reason", "advantage_transformed", "advantage_original"),
    *("identified", "identified_original", "crowd", "seconds"),
)
"""What the journal keeps of a row."""


@dataclass(frozen=True)
class ToldTrial:
    """One arm, trained with one seed and attacked by someone who is `told` of it, or not."""

    arm: str
    told: bool
    seed: int = SEED
    images: int = 32
    public: int = 1000
    private: int = 3000
    model: str = "lenet-relu"

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def trials() -> Iterator[ToldTrial]:
    """Without a defence there is nothing to be told; else both."""
    for arm in ARMS:
        yield from (ToldTrial(arm, told) for told in ((True,) if arm == "none" else (True, False)))


@dataclass(eq=False)
class ToldStudy:
    """A folder with a journal and the models; every trial is run at most once."""

    folder: Path
    data: DataSet | None
    training: TrainingSettings = TRAINING

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, chosen: Sequence[ToldTrial], progress: OnProgress) -> None:
        """Run the trials that the journal does not have."""
        assert self.data is not None
        described = {"data": self.data.name, "training": self.training.to_record(), **PRESENT}
        items = [
            WorkItem(
                {"trial": one.to_record(), "study": described},
                TrialRun(self, one),
                f"{one.arm}, {'told' if one.told else 'not told'}",
            )
            for one in chosen
        ]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "trials", identify)

    def run_trial(self, trial: ToldTrial, report: Report) -> dict[str, Any]:
        """Train under the arm, unless that was done, and attack."""
        assert self.data is not None
        audit = make_audit(self.data, trial, self.training)
        models = self.folder / "models" / f"seed-{trial.seed}"
        audited = audit.run(progress=lambda _, share: report(round(100 * share), 100), models=models)
        return {
            "test_accuracy": audited.accuracies[trial.arm],
            "training_seconds": audited.training_seconds[trial.arm],
            "used": audited.arms[trial.arm].used,
            "cells": [describe(audited, phase, attack) for phase in PHASES for attack in ATTACKS],
        }


def make_audit(data: DataSet, trial: ToldTrial, training: TrainingSettings) -> Audit:
    """Make the audit of a trial; public images, those of the clients' training, and attacked ones are all different."""
    public = min(trial.public, len(data.train) // 2)
    private = min(trial.private, len(data.train) - public)
    clients = replace(data, train=choose_private(data, private, trial.seed, public=public))
    settings = AuditSettings(
        model=trial.model,
        arms=(trial.arm,),
        phases=PHASES,
        attacks=ATTACKS,
        images=trial.images,
        knows_defence=trial.told,
        training=training,
        group=trial.images,
        stop_early=False,
        seed=trial.seed,
    )
    attacks: dict[str, Attack] = {name: find_attack(name) for name in ATTACKS}
    return Audit(settings, data=clients, attacks=attacks, public=choose_public(data, public, trial.seed).batch())


def describe(audited: AuditReport, phase: str, attack: str) -> dict[str, Any]:
    """Return what the journal keeps of one phase and attack: the verdict and the rows."""
    (summary,) = [one for one in audited.summaries if (one.phase, one.attack) == (phase, attack)]
    rows = [row.to_record() for row in audited.rows if (row.phase, row.attack) == (phase, attack)]
    return {
        "phase": phase,
        "attack": attack,
        "outcome": summary.outcome,
        "reason": summary.reason,
        "rows": [{name: row[name] for name in KEPT} for row in rows],
    }


def identify(line: Mapping[str, Any]) -> object:
    return [line["trial"], line["study"], versions_of(line)]


@dataclass(frozen=True, eq=False)
class TrialRun:
    """One trial as a job."""

    study: ToldStudy
    trial: ToldTrial

    def run(self, report: Report) -> dict[str, Any]:
        return self.study.run_trial(self.trial, report)
