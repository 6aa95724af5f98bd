"""Is `standard` ahead of `modern`, never behind its earlier versions, nor when it is told? What is run, and how."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from gradveil.attacks import Attack, Ensemble, LowestLoss, find_attack
from gradveil.audit import Audit, AuditSettings, Row, Rule
from gradveil.data import DataSet, choose_private, choose_public
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings
from gradveil.workers import Report, Workers

PARTS = ("modern", "versions", "told")
GREY, COLOUR = "grey", "colour"
PUBLIC = 500
UNTOLD = "standard, not told"
NEVER = 1000.0
"""No image reaches so many decibels: nothing is attacked once more to confirm it."""
KEPT = (
    *("image", "label", "status", "reason", "matching_loss", "psnr_transformed", "floor_transformed"),
    *("aligned_original", "aligned_floor_original", "identified_original", "crowd", "statistic"),
)
"""What the journal keeps of a row."""
TRAINING = replace(FAST, epochs=4, test_every=4, threads=1)
COLOUR_TRAINING = replace(TRAINING, epochs=20, test_every=20)
"""Ten classes of CIFAR-100 have 4,500 images to train on."""
TRAININGS = {GREY: TRAINING, COLOUR: COLOUR_TRAINING}


def earlier(version: int) -> Attack:
    """Return an earlier version: its members, and how it chose."""
    sixth = ensemble("standard-6")
    if version == 6:
        return sixth
    kept = {name: member for name, member in sixth.members.items() if name != "spear"}
    return Ensemble(kept, LowestLoss(looks_through=True))


def ensemble(name: str) -> Ensemble:
    found = find_attack(name)
    assert isinstance(found, Ensemble)
    return found


def attackers() -> dict[str, Attack]:
    """List what is compared by name; all versions have the steps of today's for the members they share."""
    return {
        "modern": find_attack("modern"),
        "fast": find_attack("fast"),
        "standard 5": earlier(5),
        "standard 6": earlier(6),
        "standard": ensemble("standard"),
        "standard, lowest loss": Ensemble(ensemble("standard").members),
        UNTOLD: ensemble("standard"),
    }


@dataclass(frozen=True)
class Cell:
    """One attacker on the images of one place; every member computes `share` of its own gradients.

    `modern` and `fast` compute `gradients` of them. A `batch` of images is behind every update.
    """

    part: str
    data: str
    model: str
    arm: str
    phase: str
    batch: int
    attacker: str
    images: int
    share: float = 0.0
    gradients: int = 0
    seed: int = 1

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def place(self) -> tuple[str, ...]:
        return (self.data, self.model, self.arm, self.phase, str(self.batch), str(self.seed))

    def attack(self) -> Attack:
        found = attackers()[self.attacker]
        return found.with_budget(self.gradients or max(1, round(self.share * found.gradients)))


def modern_cells(images: int = 32) -> Iterator[Cell]:
    """Compare with `modern` on a trained `convnet-16`; the shares make up for what a rehearsal and learning cost."""
    place = ("modern", COLOUR, "convnet-16", "none", "final", 1)
    yield Cell(*place, "modern", images, gradients=220)
    yield Cell(*place, "standard", images, share=0.03)
    yield Cell(*place, "standard, lowest loss", images, share=0.03)
    yield Cell(*place, "fast", images, gradients=220)
    yield Cell(*place, "standard 6", images, gradients=220)
    # With 220 gradients they may be quicker than `standard`; with these they are not.
    yield from (Cell(*place, attacker, images, gradients=300) for attacker in ("modern", "fast"))


LENET = [("lenet-relu", arm, phase, 1) for phase in ("init", "final") for arm in ("none", "prune:95", "gaussian:1e-2")]
POLICIES = [("lenet-relu", "policy:3-1-7,no-base", phase, 1) for phase in ("init", "final")]
OTHERS = [
    *(("mlp", "none", phase, batch) for batch in (1, 4) for phase in ("init", "final")),
    *(("lenet-relu", "none", phase, 4) for phase in ("init", "final")),
    *(("convnet-8", "none", phase, 1) for phase in ("init", "final")),
]
AGAIN = (2, 3, 4)


def version_cells(images: int = 16) -> Iterator[Cell]:
    """Compare with versions 5 and 6; version 5 differs from 6 under a policy and on batches of `mlp` only."""
    for model, arm, phase, batch in (*LENET, *POLICIES, *OTHERS):
        place = ("versions", GREY, model, arm, phase, batch)
        yield Cell(*place, "standard 6", images, share=0.1)
        yield Cell(*place, "standard", images, share=0.1)
        if arm.startswith("policy") or (model == "mlp" and batch > 1):
            yield Cell(*place, "standard 5", images, share=0.1)
    # Of all places the one where seed 1 showed less, and its other phase, with more images and other seeds.
    for seed in AGAIN:
        for phase in ("init", "final"):
            place = ("versions", GREY, "lenet-relu", "none", phase, 4)
            yield from (Cell(*place, name, 2 * images, share=0.1, seed=seed) for name in ("standard 6", "standard"))


def told_cells(images: int = 32) -> Iterator[Cell]:
    """Compare with whoever is not told of the policy."""
    for arm in ("crop-flip", *(f"policy:{policy},no-base" for policy in ("3-1-7", "43-18-18", "3-1-7+43-18-18"))):
        for phase in ("init", "final"):
            place = ("told", GREY, "lenet-relu", arm, phase, 1)
            yield from (Cell(*place, attacker, images, share=0.1) for attacker in ("standard", UNTOLD))


def cells(parts: Sequence[str] = PARTS) -> list[Cell]:
    made = {"modern": modern_cells, "versions": version_cells, "told": told_cells}
    return [cell for part in parts for cell in made[part]()]


@dataclass(eq=False)
class AttackerStudy:
    """A folder with a journal and the models; every cell is run at most once. `data` holds data sets by kind."""

    folder: Path
    data: Mapping[str, DataSet]
    trainings: Mapping[str, TrainingSettings] = field(default_factory=lambda: dict(TRAININGS))

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, chosen: Sequence[Cell], progress: OnProgress) -> None:
        """Run the cells that the journal does not have."""
        items = [
            WorkItem(
                {"cell": cell.to_record(), "study": self.describe(cell)},
                CellRun(self, cell),
                f"{cell.attacker}: {', '.join(cell.place)}",
            )
            for cell in chosen
        ]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "cells", identify)

    def describe(self, cell: Cell) -> dict[str, Any]:
        return {"data": self.data[cell.data].name, "training": self.trainings[cell.data].to_record(), **PRESENT}

    def run_cell(self, cell: Cell, report: Report) -> dict[str, Any]:
        """Train the model if it is not there, and attack."""
        audit = make_audit(self.data[cell.data], cell, self.trainings[cell.data])
        models = self.folder / "models" / cell.data / cell.model / f"seed-{cell.seed}"
        audited = audit.run(progress=lambda _, share: report(round(100 * share), 100), models=models)
        seconds = [one.processor_seconds for one in audited.attacked]
        return {
            "test_accuracy": audited.accuracies.get(audited.settings.arms[0]),
            "gradients": cell.attack().gradients,
            "processor_seconds": round(sum(seconds) / max(1, len(seconds)), 3),
            "rows": [describe(row, null) for scored in audited.verdict.cells for row, null in scored.pairs()],
        }


def describe(row: Row, null: Sequence[float]) -> dict[str, Any]:
    """Return what the journal keeps of an image; `control` is the mean score of the updates of other images."""
    record = row.to_record()
    return {**{name: record[name] for name in KEPT}, "control": round(fmean(null), 6) if null else None}


def make_audit(data: DataSet, cell: Cell, training: TrainingSettings) -> Audit:
    """Make the audit of a cell; public images, those of the clients' training, and attacked ones are all different."""
    public = min(PUBLIC, len(data.train) // 2)
    clients = replace(data, train=choose_private(data, len(data.train) - public, cell.seed, public=public))
    settings = AuditSettings(
        model=cell.model,
        arms=(cell.arm,),
        phases=(cell.phase,),
        attacks=(cell.attacker,),
        images=cell.images,
        images_per_client=cell.batch,
        knows_defence=cell.attacker != UNTOLD,
        training=training,
        group=cell.images,
        stop_early=False,
        rule=Rule(epsilon=NEVER),
        seed=cell.seed,
    )
    ours = choose_public(data, public, cell.seed).batch()
    return Audit(settings, data=clients, attacks={cell.attacker: cell.attack()}, public=ours)


def identify(line: Mapping[str, Any]) -> object:
    return [line["cell"], line["study"], versions_of(line)]


@dataclass(frozen=True, eq=False)
class CellRun:
    """One cell as a job."""

    study: AttackerStudy
    cell: Cell

    def run(self, report: Report) -> dict[str, Any]:
        return self.study.run_cell(self.cell, report)
