"""How strong the attacks are: how one cell is run."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from gradveil.attacks import Attack, Ensemble, GradientMatching, find_attack
from gradveil.audit.cells import AttackJob, feed
from gradveil.audit.floors import Floors, make_floors
from gradveil.audit.rows import Truth, score_cell
from gradveil.data import DataSet
from gradveil.defences import CropFlip, parse_arm
from gradveil.errors import KnowledgeError
from gradveil.experiments.attack_cells import COLOUR, GREY, PHASES, Cell, measured
from gradveil.experiments.attack_sheets import keep_pictures
from gradveil.journal import Journal
from gradveil.metrics import psnr
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST, accuracy, load_checkpoint, train
from gradveil.training.checkpoint import Weights
from gradveil.types import Batch, Reconstruction, to_pixels

Progress = Callable[[str, int, int], None]
FLOOR_IMAGES = 2000
PUBLIC_IMAGES = 500
TESTED_IMAGES = 1000


def follow(found: Reconstruction, truth: Truth) -> list[tuple[float, float]]:
    """Give the PSNR of the pictures on the way and of the last, each with the share of the steps that it took."""
    last = max(1, found.history[-1][0]) if found.history else 1
    stages = [(step / last, picture) for step, picture in found.pictures if step < last] + [(1.0, found.images)]
    return [(share, float(psnr(picture, truth.transformed))) for share, picture in stages]


def with_budget(attack: Attack, evaluations: int | None) -> Attack:
    """Shorten or lengthen an attack so that it computes about `evaluations` gradients for one image.

    The members of an ensemble share them, but for those that take none and those that need to know a defence.
    """
    if evaluations is None:
        return attack
    if isinstance(attack, Ensemble):
        searching = [member for member in attack.members.values() if isinstance(member, GradientMatching)]
        sharing = sum(not (member.knows_policy or member.knows_noise) for member in searching)
        share = max(1, evaluations // max(1, sharing))
        return Ensemble({name: with_budget(member, share) for name, member in attack.members.items()})
    if isinstance(attack, GradientMatching):
        lasting = evaluations / (attack.iterations * mean_runs(attack))
        return replace(attack, steps=max(1, math.floor(lasting)))
    return attack


def mean_runs(attack: GradientMatching) -> float:
    """Average the number of a target's restarts over the steps, with those that are pruned; draws do not count."""
    edges = [0.0, *sorted(attack.prune), 1.0]
    alive, total = attack.restarts, 0.0
    for begin, end in pairwise(edges):
        total += alive * (end - begin)
        alive = (alive + 1) // 2
    return total


@dataclass(eq=False)
class Study:
    """A folder with models, journal and pictures; every cell is run at most once."""

    folder: Path
    data: dict[str, DataSet]
    seed: int = 0
    epochs: int = FAST.epochs
    fraction: dict[str, float] = field(default_factory=lambda: {GREY: 1.0, COLOUR: 0.1})

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")
        self.floors: dict[tuple[str, str], Floors] = {}
        self.accuracies: dict[tuple[str, str, str], float] = {}

    def run(self, cells: Sequence[Cell], progress: Progress) -> None:
        """Run the cells that the journal does not have; one whose attack cannot be used is noted as refused."""
        done = [measured(entry["cell"]) for entry in self.journal.read()]
        todo = [cell for cell in cells if measured(cell.to_record()) not in done and cell.data in self.data]
        for place, cell in enumerate(todo):
            try:
                found = self.run_cell(cell, lambda at, total: progress(f"{cell.attack} on {cell.model}", at, total))  # noqa: B023
            except KnowledgeError as error:
                found = {"rows": [], "refused": str(error)}
            self.journal.append({"cell": cell.to_record(), **found})
            progress("cells", place + 1, len(todo))

    def run_cell(self, cell: Cell, progress: Callable[[int, int], None]) -> dict[str, Any]:
        """Attack the images of one cell and score them: their rows, and the PSNR of T(x) on the way."""
        data, arm = self.data[cell.data], parse_arm(cell.arm)
        spec = ModelSpec(cell.model, data.shape, data.classes, data.mean, data.std)
        truths = [self.truth(cell, image) for image in cell.images]
        train_images = data.train
        job = AttackJob(
            spec,
            self.weights(cell, spec),
            tuple(Batch(truth.transformed, torch.tensor([truth.label])) for truth in truths),
            cell.images,
            arm,
            cell.phase,
            with_budget(find_attack(cell.attack), cell.evaluations),
            cell.attack,
            cell.attack != "dlg",
            self.seed,
            "cpu",
            tuple(map(str, arm.defences)),
            Batch(train_images.images[:PUBLIC_IMAGES], train_images.labels[:PUBLIC_IMAGES]),
        )
        started = time.process_time()
        attacked = job.run(progress)
        # Time of the processor, not of the clock: other work on the machine must not change the table.
        seconds = (time.process_time() - started) / len(attacked)
        keep_pictures(self.folder, cell, truths, [one.reconstruction for one in attacked])
        rows = score_cell(cell.arm, cell.phase, cell.attack, truths, attacked, self.floors_of(cell))
        return {
            "test_accuracy": self.accuracy_of(cell, spec),
            "rows": [replace(row, seconds=seconds).to_record() for row in rows],
            "paths": [follow(one.reconstruction, truth) for one, truth in zip(attacked, truths, strict=True)],
        }

    def truth(self, cell: Cell, image: int) -> Truth:
        test = self.data[cell.data].test
        original, label = test.images[image : image + 1], test.labels[image : image + 1]
        fed = feed(original, label, parse_arm(cell.arm).defences, self.seed, cell.arm, image)
        return Truth(image, int(label), to_pixels(original), fed.pixels())

    def floors_of(self, cell: Cell) -> Floors:
        key = cell.data, cell.arm
        if key not in self.floors:
            arm = parse_arm(cell.arm)
            made = make_floors(self.data[cell.data], [arm], FLOOR_IMAGES, True, self.seed, lambda _: None)
            self.floors[key] = made[arm.name]
        return self.floors[key]

    def accuracy_of(self, cell: Cell, spec: ModelSpec) -> float:
        """Measure, once, what the attacked weights have learnt."""
        key = cell.data, cell.model, cell.phase
        if key not in self.accuracies:
            model = spec.build(generator(self.seed, "model"))
            model.load_state_dict(self.weights(cell, spec))
            test = self.data[cell.data].test
            self.accuracies[key] = accuracy(model.eval(), test.take(torch.arange(min(TESTED_IMAGES, len(test)))))
        return self.accuracies[key]

    def weights(self, cell: Cell, spec: ModelSpec) -> Weights:
        """Load the weights of a phase; train the model first if they are not there."""
        place = self.folder / "models" / f"{cell.data}-{cell.model}"
        if cell.phase == "init":
            return spec.build(generator(self.seed, "model")).state_dict()
        if not (place / "final.safetensors").exists():
            settings = replace(
                FAST, epochs=self.epochs, fraction=self.fraction[cell.data], threads=1, test_every=self.epochs
            )
            model = spec.build(generator(self.seed, "model"))
            place.mkdir(parents=True, exist_ok=True)
            data = self.data[cell.data]
            train(model, data, settings, defences=[CropFlip()], seed=self.seed, phases=PHASES, folder=place, spec=spec)
        return load_checkpoint(place / f"{cell.phase}.safetensors").weights
