"""How much of batches and of several local steps is rebuilt: which cells are attacked, and how one is attacked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from gradveil.attacks import change_noise, count_images
from gradveil.audit import AUDIT_VERSION, Audit, AuditSettings
from gradveil.client import Client, Weights
from gradveil.data import IMAGE_CHOICE, DataSet
from gradveil.experiments.versions import CHOICE, KEY, STANDARD
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST, TrainingSettings, is_unfinished, train
from gradveil.types import LocalTraining, Mode
from gradveil.workers import Report, Workers

Phase = Literal["init", "final"]
PHASES: tuple[Phase, ...] = ("final", "init")
STEPS = (1, 5, 25)
IMAGES = 32
CLIENT = 8
"""Images of a client that takes several steps."""
OTHERS = (16, 4, 1, 32, 2)
"""The other sizes of batches, the most telling first."""
RATE = 0.01
FULLY_CONNECTED, SMALL, NORMALISED = "mlp", "lenet-relu", "convnet-16"
MODELS: dict[str, tuple[Mode, ...]] = {FULLY_CONNECTED: ("eval",), SMALL: ("eval",), NORMALISED: ("train", "eval")}
"""The models, and the modes that make a difference for them."""
ATTACKS: dict[str, tuple[str, ...]] = {
    "analytic": (FULLY_CONNECTED,),
    "spear": (FULLY_CONNECTED,),
    "cocktail-party": (SMALL, NORMALISED),
    "fast": (FULLY_CONNECTED, SMALL, NORMALISED),
}
"""The attacks, and the models that each is run on: the first two refuse convolutions, the third is `spear` at `mlp`."""
TRAINING = replace(FAST, epochs=3, test_every=3, threads=1)
RUN = {KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE, STANDARD: 6}
"""The versions that lines are of; `standard` is not run, and the number is that of the day the study began."""


@dataclass(frozen=True)
class BatchCell:
    """One model in one phase and mode whose clients have `batch` images and release a gradient, or take `steps`."""

    model: str
    phase: Phase
    mode: Mode
    batch: int
    steps: int | None
    attack: str
    images: int = IMAGES

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def place(self) -> tuple[str, str, str, int, int]:
        """What the attacks of a cell have in common."""
        return (self.model, self.phase, self.mode, self.batch, self.steps or 0)

    def local(self) -> LocalTraining:
        """Say how a client works: all of its images at every step."""
        if self.steps is None:
            return LocalTraining(mode=self.mode)
        return LocalTraining(steps=self.steps, batch_size=self.batch, learning_rate=RATE, mode=self.mode)


def cells() -> Iterator[BatchCell]:
    """List the cells, the most telling first, and of these the cheapest: batches of 8, then several steps.

    Gradient matching on the network with batch normalisation takes most of the time and comes last.
    """
    yield from gradients((FULLY_CONNECTED, SMALL), (CLIENT,), tuple(ATTACKS))
    yield from gradients((NORMALISED,), (CLIENT,), ("cocktail-party",))
    yield from several_steps((SMALL, FULLY_CONNECTED))
    yield from gradients((FULLY_CONNECTED, SMALL), OTHERS, tuple(ATTACKS))
    yield from gradients((NORMALISED,), OTHERS, ("cocktail-party",))
    yield from gradients((NORMALISED,), (CLIENT, *OTHERS), ("fast",))
    yield from several_steps((NORMALISED,))


def gradients(models: Sequence[str], batches: Sequence[int], attacks: Sequence[str]) -> Iterator[BatchCell]:
    """List the attacks on single gradients of batches."""
    for model in models:
        for batch in batches:
            for attack in attacks:
                if model in ATTACKS[attack]:
                    yield from (
                        BatchCell(model, phase, mode, batch, None, attack) for phase in PHASES for mode in MODELS[model]
                    )


def several_steps(models: Sequence[str]) -> Iterator[BatchCell]:
    """List the attacks on weight changes; only of one step is anything read off directly."""
    for steps in STEPS:
        for model in models:
            for attack in attacks_on(model) if steps == 1 else ["fast"]:
                yield from (
                    BatchCell(model, phase, mode, CLIENT, steps, attack) for phase in PHASES for mode in MODELS[model]
                )


def attacks_on(model: str) -> list[str]:
    return [name for name, models in ATTACKS.items() if model in models]


@dataclass(eq=False)
class BatchStudy:
    """A folder with a journal and the models; every cell is run at most once."""

    folder: Path
    data: DataSet | None
    training: TrainingSettings = TRAINING

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")

    def run(self, chosen: Sequence[BatchCell], progress: OnProgress) -> None:
        """Run the cells that the journal lacks."""
        assert self.data is not None
        study = {"data": self.data.name, "training": self.training.to_record(), **RUN}
        items = [
            WorkItem({"cell": one.to_record(), "study": study}, CellRun(self, one), f"{one.attack}, {one.model}")
            for one in chosen
        ]
        with Workers(1) as crew:
            run_missing(self.journal, items, crew, progress, "cells")

    def run_cell(self, cell: BatchCell, report: Report) -> dict[str, Any]:
        """Attack what clients of a cell release."""
        assert self.data is not None
        weights, accuracy = self.weights(cell.model, cell.phase)
        audit = make_audit(self.data, cell, self.training, weights)
        found = audit.run(progress=lambda _, share: report(round(100 * share), 100))
        return {
            "test_accuracy": accuracy,
            "counted": count_batches(audit, weights),
            "summary": found.summaries[0].to_record(),
            "refused": next((row.reason for row in found.rows if row.status == "refused"), ""),
            "failed": next((row.reason for row in found.rows if row.status == "failed"), ""),
            "approximations": sorted({text for row in found.rows for text in row.approximations}),
        }

    def weights(self, model: str, phase: Phase) -> tuple[Weights, float]:
        """Train a model, once, and return its weights in a phase and its accuracy at the end."""
        assert self.data is not None
        data, folder = self.data, self.folder / "models" / model
        spec = ModelSpec(model, data.shape, data.classes, data.mean, data.std)
        network = spec.build(generator(0, "model"))
        resume = is_unfinished(folder)
        trained = train(network, data, self.training, seed=0, phases=PHASES, folder=folder, spec=spec, resume=resume)
        return trained.snapshots[phase], trained.test_accuracy


def make_audit(data: DataSet, cell: BatchCell, training: TrainingSettings, weights: Weights) -> Audit:
    """Make the audit of a cell; it stops at no early answer, so that every cell has as many images."""
    settings = AuditSettings(
        model=cell.model,
        arms=("none",),
        phases=(cell.phase,),
        attacks=(cell.attack,),
        images=cell.images,
        images_per_client=cell.batch,
        local=cell.local(),
        training=training,
        group=cell.images,
        stop_early=False,
    )
    return Audit(settings, data=data, weights={cell.phase: weights})


def count_batches(audit: Audit, weights: Weights) -> list[int]:
    """Read the number of images off every update: the largest rank of a linear layer's gradient."""
    linear = [f"{name}.weight" for name, layer in audit.model.named_modules() if isinstance(layer, nn.Linear)]
    local = audit.settings.local
    noise = {name: change_noise(weights[name], local) for name in linear}
    client = Client(audit.spec.build(generator(0)), local)
    counted = []
    for (share,) in audit.shares():
        update = client.update(weights, share.batch, (), torch.Generator().manual_seed(0))
        counted.append(max(count_images(update.tensors[name], noise[name]) for name in linear))
    return counted


@dataclass(frozen=True, eq=False)
class CellRun:
    """One cell as a job."""

    study: BatchStudy
    cell: BatchCell

    def run(self, report: Report) -> Mapping[str, Any]:
        return self.study.run_cell(self.cell, report)
