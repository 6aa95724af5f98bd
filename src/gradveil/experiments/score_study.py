"""Does a score tell which policy stops an attack? Random policies, scored and really attacked."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from gradveil.data import DataSet
from gradveil.experiments.attack_cells import GREY, PHASES, Cell
from gradveil.experiments.attacks import Progress, Study
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import PrivacyScore, function_of
from gradveil.scores.blind_guess import BlindGuessScore
from gradveil.scores.brief_attack import BRIEF, BriefAttackScore
from gradveil.scores.sensitivity import SensitivityScore
from gradveil.transforms import CATALOGUE, Policy, PolicySet, parse_policy
from gradveil.types import Batch, Task

MODELS = ("lenet-relu", "convnet-4")
POLICIES = 64
ATTACKED = tuple(range(8))
SCORED = tuple(range(200, 216))
"""Positions in the test split: the images that are scored are not those that are attacked."""
PUBLIC = 1000


class PolicyScore(Protocol):
    """Anything that gives a figure for each image under a policy, lower for more private."""

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Bench:
    """What a score may be made of."""

    data: DataSet
    spec: ModelSpec
    task: Task
    seed: int

    @property
    def images(self) -> Tensor:
        return self.data.test.images[list(SCORED)]

    @property
    def labels(self) -> Tensor:
        return self.data.test.labels[list(SCORED)]

    def blind(self) -> BlindGuessScore:
        train = self.data.train
        public = Batch(train.images[:PUBLIC], train.labels[:PUBLIC])
        return BlindGuessScore(self.images, self.labels, public, self.data.classes, self.seed)

    def privacy(self, form: Any = "layerwise", quadrature: str = "trapezoid-21", start: Any = "uniform") -> PolicyScore:
        return PrivacyScore(
            self.task.model,
            self.images,
            self.labels,
            form=form,
            quadrature=quadrature,
            start=start,
            seed=self.seed,
        )

    def brief(self, steps: int, start: str) -> PolicyScore:
        attack = replace(BRIEF, steps=steps, start=start)
        return BriefAttackScore(self.task, self.images, self.labels, self.blind(), attack, self.seed)


@dataclass(frozen=True, eq=False)
class Rise:
    """S_pri above the similarity that the start point has already."""

    inner: PrivacyScore

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        start = self.inner.curves(policy, [0.0], places)[:, 0]
        return self.inner.score(policy, places) - start


@dataclass(frozen=True, eq=False)
class SomeImages:
    """A score of the first few images only: for one that costs more."""

    inner: PolicyScore
    count: int

    def score(self, policy: Policy | PolicySet, places: Sequence[int] | None = None) -> Tensor:
        return self.inner.score(policy, range(self.count) if places is None else places)


def make_rise(bench: Bench) -> PolicyScore:
    inner = bench.privacy()
    assert isinstance(inner, PrivacyScore)
    return Rise(inner)


SCORES: dict[str, Callable[[Bench], PolicyScore]] = {
    "S_pri": lambda bench: bench.privacy(),
    "S_pri, global": lambda bench: bench.privacy(form="global"),
    "S_pri, normal start": lambda bench: bench.privacy(start="normal"),
    "S_pri, gauss-5": lambda bench: bench.privacy(quadrature="gauss-5"),
    "S_pri above its start": make_rise,
    "sensitivity": lambda bench: SensitivityScore(bench.task.model, bench.images, bench.labels, seed=bench.seed),
    "blind guess": lambda bench: bench.blind(),
    "brief attack, 8 steps": lambda bench: SomeImages(bench.brief(8, "class-mean"), 8),
    "brief attack, 24 steps, 4 images": lambda bench: SomeImages(bench.brief(24, "zeros"), 4),
    "brief attack, 12 steps, 4 images": lambda bench: SomeImages(bench.brief(12, "zeros"), 4),
    "brief attack, 6 steps, 8 images": lambda bench: SomeImages(bench.brief(6, "zeros"), 8),
}


@dataclass(frozen=True)
class ScoreCell:
    """One score of one policy."""

    model: str
    phase: str
    policy: str
    score: str

    def to_record(self) -> dict[str, Any]:
        return {"model": self.model, "phase": self.phase, "policy": self.policy, "score": self.score}


def study_policies(seed: int, count: int = POLICIES) -> list[str]:
    """Draw policies of three transformations, as the papers do for their figure, no two of them the same function."""
    source = generator(seed, "score study", "policies")
    found: dict[str, str] = {}
    while len(found) < count:
        policy = Policy(tuple(torch.randint(len(CATALOGUE), (3,), generator=source).tolist()))
        found.setdefault(function_of(policy), str(policy))
    return list(found.values())


def attack_cells(models: Sequence[str], policies: Sequence[str]) -> Iterator[Cell]:
    """Attack every policy in every phase."""
    for model in models:
        for phase in PHASES:
            for policy in policies:
                yield Cell("scores", GREY, model, phase, f"policy:{policy},no-base", "fast", ATTACKED)


@dataclass(eq=False)
class ScoreStudy:
    """A folder with the attacks' journal and the scores'; nothing is computed twice."""

    folder: Path
    data: DataSet
    seed: int = 0

    def __post_init__(self) -> None:
        self.attacks = Study(self.folder, {GREY: self.data}, self.seed)
        self.journal = Journal(self.folder / "scores.jsonl")

    def run(self, models: Sequence[str], policies: Sequence[str], progress: Progress) -> None:
        """Score and attack what the journals do not have."""
        for model in models:
            for phase in PHASES:
                self.run_scores(model, phase, policies, progress)
        self.attacks.run(list(attack_cells(models, policies)), progress)

    def run_scores(self, model: str, phase: str, policies: Sequence[str], progress: Progress) -> None:
        """Give every policy every score, on one model in one phase."""
        done = [entry["cell"] for entry in self.journal.read()]
        bench = self.bench(model, phase)
        for name, make in SCORES.items():
            cells = [ScoreCell(model, phase, policy, name) for policy in policies]
            todo = [cell for cell in cells if cell.to_record() not in done]
            score = make(bench) if todo else None
            for place, cell in enumerate(todo):
                assert score is not None
                started = time.process_time()
                values = score.score(parse_policy(cell.policy))
                seconds = time.process_time() - started
                self.journal.append({"cell": cell.to_record(), "values": values.tolist(), "seconds": seconds})
                progress(f"{name} on {model}, {phase}", place + 1, len(todo))

    def bench(self, model: str, phase: str) -> Bench:
        data = self.data
        spec = ModelSpec(model, data.shape, data.classes, data.mean, data.std)
        built = spec.build(generator(self.seed, "model"))
        built.load_state_dict(self.attacks.weights(Cell("scores", GREY, model, phase, "none", "fast", ()), spec))
        task = Task(built.eval(), F.cross_entropy, data.shape, data.classes, data.mean, data.std)
        return Bench(data, spec, task, self.seed)
