"""How strong the attacks are: which cells are run, and how one cell is run."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.attacks import Attack, Ensemble, GradientMatching, find_attack
from gradveil.audit.cells import AttackJob, feed
from gradveil.audit.floors import Floors, make_floors
from gradveil.audit.rows import Truth, score_cell
from gradveil.data import DataSet
from gradveil.defences import CropFlip, parse_arm
from gradveil.journal import Journal
from gradveil.metrics import psnr
from gradveil.models import ModelSpec
from gradveil.reports.pictures import draw_grid, to_png
from gradveil.results import write_file
from gradveil.rng import generator
from gradveil.training import FAST, load_checkpoint, train
from gradveil.training.checkpoint import Weights
from gradveil.types import Batch, Reconstruction, to_pixels

Progress = Callable[[str, int, int], None]
GREY, COLOUR = "sample", "colour"
EARLY = "step-10"
PHASES = ("init", EARLY, "final")
PUBLISHED = ("lbfgs-l2", "adam-cosine", "lbfgs-cosine", "adam-l1", "adam-l2", "sgd-cosine")
BEST = ("fast", "strong", "adam-cosine")
REST = ("adam-l1", "adam-l2", "sgd-cosine", "dlg", "multi-scale", "class-mean", "noise", "bn-prior", "standard")
POLICIES = ("3-1-7", "43-18-18", "3-1-7+43-18-18")
FLOOR_IMAGES = 2000
PUBLIC_IMAGES = 500
GROUP = 4


@dataclass(frozen=True)
class Cell:
    """A few images, attacked in one way.

    `evaluations`, if given, is how many gradients the attack may compute for one image.
    """

    part: str
    data: str
    model: str
    phase: str
    arm: str
    attack: str
    images: tuple[int, ...]
    evaluations: int | None = None

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "images": list(self.images)}


def measured(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Say what the record of a cell asks to measure: two parts that ask the same share the answer."""
    return {name: value for name, value in cell.items() if name != "part"}


def groups(count: int) -> list[tuple[int, ...]]:
    return [tuple(range(first, min(first + GROUP, count))) for first in range(0, count, GROUP)]


def published() -> Iterator[Cell]:
    """The six attacks at their published settings; `lbfgs-cosine`, by far the slowest, on one image and last."""
    for attack in sorted(PUBLISHED, key="lbfgs-cosine".__eq__):
        for phase in ("init", "final"):
            images = (0,) if attack == "lbfgs-cosine" else (0, 1, 2, 3)
            yield Cell("published", GREY, "convnet-16", phase, "none", attack, images)


def equal_budget(evaluations: int = 400) -> Iterator[Cell]:
    """All attacks with the same number of gradients; the best three get more images."""
    for data in (GREY, COLOUR):
        for model in ("lenet", "convnet-16", "resnet20-1"):
            for phase in PHASES:
                for attack in (*BEST, *REST):
                    for images in groups(12 if attack in BEST else GROUP):
                        yield Cell("budget", data, model, phase, "none", attack, images, evaluations)


def policy_aware(model: str = "lenet-relu") -> Iterator[Cell]:
    """Someone who knows the policies beside someone who does not.

    `policy-aware` starts from the mean of the class, so `class-mean` is its control: the same start without the policy.
    All have the same number of steps, yet `policy-aware` takes the first of them once for each possible draw.
    """
    for images in groups(12):
        for phase in ("init", "final"):
            for policy in POLICIES:
                for attack in ("fast", "class-mean", "policy-aware"):
                    yield Cell("policy", GREY, model, phase, f"policy:{policy},no-base", attack, images, 400)


def speed(count: int = 20) -> Iterator[Cell]:
    """The published attack and the two recipes on the same images."""
    for model in ("lenet-relu", "convnet-16"):
        for phase in ("init", "final"):
            for images in groups(count):
                for attack in ("fast", "strong", "adam-cosine"):
                    yield Cell("speed", GREY, model, phase, "none", attack, images)


PARTS: dict[str, Callable[[], Iterator[Cell]]] = {
    "speed": speed,
    "policy": policy_aware,
    "published": published,
    "budget": equal_budget,
}


def follow(found: Reconstruction, truth: Truth) -> list[tuple[float, float]]:
    """Give the PSNR of the pictures on the way and of the last, each with the share of the steps that it took."""
    last = max(1, found.history[-1][0]) if found.history else 1
    stages = [(step / last, picture) for step, picture in found.pictures if step < last] + [(1.0, found.images)]
    return [(share, float(psnr(picture, truth.transformed))) for share, picture in stages]


def with_budget(attack: Attack, evaluations: int | None) -> Attack:
    """Shorten or lengthen an attack so that it computes about `evaluations` gradients for one image.

    The members of an ensemble share them, but for those that take none and those that need a policy to look through.
    """
    if evaluations is None:
        return attack
    if isinstance(attack, Ensemble):
        sharing = sum(
            isinstance(member, GradientMatching) and not member.knows_policy for member in attack.members.values()
        )
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
    fraction: dict[str, float] = field(default_factory=lambda: {GREY: 1.0, COLOUR: 0.2})

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder / "journal.jsonl")
        self.floors: dict[tuple[str, str], Floors] = {}

    def run(self, cells: Sequence[Cell], progress: Progress) -> None:
        """Run the cells that the journal does not have."""
        done = [measured(entry["cell"]) for entry in self.journal.read()]
        todo = [cell for cell in cells if measured(cell.to_record()) not in done and cell.data in self.data]
        for place, cell in enumerate(todo):
            found = self.run_cell(cell, lambda at, total: progress(f"{cell.attack} on {cell.model}", at, total))  # noqa: B023
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
        self.draw(cell, truths, [one.reconstruction for one in attacked])
        rows = score_cell(cell.arm, cell.phase, cell.attack, truths, attacked, self.floors_of(cell))
        return {
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

    def weights(self, cell: Cell, spec: ModelSpec) -> Weights:
        """Load the weights of a phase; train the model first if they are not there."""
        place = self.folder / "models" / f"{cell.data}-{cell.model}"
        if cell.phase == "init":
            return spec.build(generator(self.seed, "model")).state_dict()
        if not (place / "final.safetensors").exists():
            settings = replace(FAST, epochs=self.epochs, fraction=self.fraction[cell.data], threads=1)
            model = spec.build(generator(self.seed, "model"))
            place.mkdir(parents=True, exist_ok=True)
            data = self.data[cell.data]
            train(model, data, settings, defences=[CropFlip()], seed=self.seed, phases=PHASES, folder=place, spec=spec)
        return load_checkpoint(place / f"{cell.phase}.safetensors").weights

    def draw(self, cell: Cell, truths: Sequence[Truth], found: Sequence[Reconstruction]) -> None:
        """Keep the pictures of a cell."""
        rows: list[tuple[str, list[Tensor | None]]] = [
            ("original", [truth.original[0] for truth in truths]),
            ("fed", [truth.transformed[0] for truth in truths]),
            ("rebuilt", [one.images[0] if one.status == "ok" else None for one in found]),
        ]
        budget = "own" if cell.evaluations is None else str(cell.evaluations)
        names = (cell.data, cell.model, cell.phase, cell.arm, cell.attack, budget, f"{cell.images[0]:03d}")
        place = self.folder / "pictures"
        place.mkdir(exist_ok=True)
        write_file(place / ("_".join(names).replace(":", "-").replace(",", "-") + ".png"), to_png(draw_grid(rows)))
