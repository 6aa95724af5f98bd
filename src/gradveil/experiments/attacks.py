"""How strong the attacks are: how one cell is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradveil.attacks import Attack, find_attack
from gradveil.audit import Attacked, Audit, AuditSettings
from gradveil.client import Weights
from gradveil.data import DataSet, choose_attacked, spread
from gradveil.defences import CropFlip
from gradveil.experiments.attack_cells import COLOUR, GREY, PHASES, Cell, measured
from gradveil.experiments.attack_sheets import keep_pictures
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.metrics import psnr
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings, accuracy, load_checkpoint, train
from gradveil.workers import Report, Workers

TESTED_IMAGES = 1000


def follow(attacked: Attacked) -> list[tuple[float, float]]:
    """Return the PSNR of the pictures on the way and of the last, each with the share of the steps that it took."""
    result, target = attacked.reconstruction, attacked.truth.transformed
    last = max(1, result.history[-1][0]) if result.history else 1
    stages = [(step / last, picture) for step, picture in result.pictures if step < last] + [(1.0, result.images)]
    return [(share, float(psnr(picture, target))) for share, picture in stages]


@dataclass(eq=False)
class AttackStudy:
    """A folder with models, journal and pictures; every cell is run at most once."""

    folder: Path
    data: dict[str, DataSet]
    seed: int = 0
    epochs: int = FAST.epochs
    fraction: dict[str, float] = field(default_factory=lambda: {GREY: 1.0, COLOUR: 0.1})

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")
        self.accuracies: dict[tuple[str, str, str], float] = {}

    def run(self, cells: Sequence[Cell], progress: OnProgress) -> None:
        """Run the cells that the journal does not have; one whose attack cannot be used is noted as refused."""
        items = [
            WorkItem(
                {"cell": cell.to_record(), **PRESENT},
                CellRun(self, cell),
                f"{cell.attack} on {cell.model}",
            )
            for cell in cells
            if cell.data in self.data
        ]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "cells", identify)

    def run_cell(self, cell: Cell, report: Report) -> dict[str, Any]:
        """Audit the images of one cell: their rows, and the PSNR of T(x) on the way."""
        data = self.data[cell.data]
        spec = ModelSpec(cell.model, data.shape, data.classes, data.mean, data.std)
        audit = Audit(
            self.settings_of(cell),
            data=data,
            model=spec,
            attacks={cell.attack: self.attack_of(cell)},
            weights={cell.phase: self.weights(cell, spec)},
        )
        audited = audit.run(progress=lambda _, share: report(round(100 * share), 100), keep_history=True)
        if all(row.status == "refused" for row in audited.rows):
            return {"rows": [], "refused": audited.rows[0].reason}
        keep_pictures(self.folder, cell, audited.attacked)
        # Time of the processor, not of the clock: other work on the machine must not change the table.
        pairs = zip(audited.rows, audited.attacked, strict=True)
        timed = [replace(row, seconds=one.processor_seconds) for row, one in pairs]
        return {
            "test_accuracy": self.accuracy_of(cell, spec),
            "rows": [row.to_record() for row in timed],
            "paths": [follow(one) for one in audited.attacked],
        }

    def settings_of(self, cell: Cell) -> AuditSettings:
        """Say what is attacked; the attacker is told the defence, though never what was drawn."""
        return AuditSettings(
            arms=(cell.arm,),
            phases=(cell.phase,),
            images=len(cell.images),
            places=self.places_of(cell),
            labels="hidden" if cell.attack == "dlg" else "known",
            knows_defence=True,
            training=self.training_of(cell),
            group=len(cell.images),
            seed=self.seed,
        )

    def places_of(self, cell: Cell) -> tuple[int, ...]:
        """Find the positions of a cell's images in the test split."""
        order = choose_attacked(self.data[cell.data], max(cell.images) + 1, self.seed)
        return tuple(order[number] for number in cell.images)

    def attack_of(self, cell: Cell) -> Attack:
        attack = find_attack(cell.attack)
        return attack if cell.evaluations is None else attack.with_budget(cell.evaluations)

    def training_of(self, cell: Cell) -> TrainingSettings:
        return replace(FAST, epochs=self.epochs, fraction=self.fraction[cell.data], threads=1, test_every=self.epochs)

    def accuracy_of(self, cell: Cell, spec: ModelSpec) -> float:
        """Measure, once, what the attacked weights have learnt."""
        key = cell.data, cell.model, cell.phase
        if key not in self.accuracies:
            model = spec.build(generator(self.seed, "model"))
            model.load_state_dict(self.weights(cell, spec))
            test = self.data[cell.data].test
            tested = spread(test.labels, generator(self.seed, "tested images"))[:TESTED_IMAGES]
            self.accuracies[key] = accuracy(model.eval(), test.take(tested))
        return self.accuracies[key]

    def weights(self, cell: Cell, spec: ModelSpec) -> Weights:
        """Load the weights of a phase; train the model first if they are not there."""
        place = self.folder / "models" / f"{cell.data}-{cell.model}"
        if cell.phase == "init":
            return spec.build(generator(self.seed, "model")).state_dict()
        if not (place / "final.safetensors").exists():
            model = spec.build(generator(self.seed, "model"))
            place.mkdir(parents=True, exist_ok=True)
            data = self.data[cell.data]
            train(
                model,
                data,
                self.training_of(cell),
                defences=[CropFlip()],
                seed=self.seed,
                phases=PHASES,
                folder=place,
                spec=spec,
            )
        return load_checkpoint(place / f"{cell.phase}.safetensors").weights


def identify(line: Mapping[str, Any]) -> object:
    """Say what a line measures: two parts of the study that ask the same share the answer."""
    return [measured(line["cell"]), versions_of(line)]


@dataclass(frozen=True, eq=False)
class CellRun:
    """One cell as a job."""

    study: AttackStudy
    cell: Cell

    def run(self, report: Report) -> dict[str, Any]:
        return self.study.run_cell(self.cell, report)
