"""Does a score tell which policy stops an attack? Random policies, scored and really attacked."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradveil.data import DataSet, choose_public, choose_scored
from gradveil.experiments.attack_cells import GREY, PHASES, Cell
from gradveil.experiments.attacks import AttackStudy
from gradveil.experiments.versions import PRESENT, versions_of
from gradveil.journal import Journal
from gradveil.losses import CrossEntropy, parse_loss
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.scores import Score, ScoreInputs, find_score, function_of
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.training import FAST
from gradveil.transforms import CATALOGUE, Policy, parse_policy
from gradveil.types import Task
from gradveil.workers import Report, Shared, Workers

MODELS = ("lenet-relu", "convnet-4")
POLICIES = 64
ATTACKED = tuple(range(8))
"""The first of those that are attacked."""
SCORED = 16
"""How many images are scored, none of which is attacked."""
PUBLIC = 1000
LOSS = FAST.loss
"""That of the training of the attacked models: scores and attacks see the same gradients."""


@dataclass(frozen=True)
class StudiedScore:
    """A score of the registry, by one rule, on the first so many of the scored images: fewer if it costs more."""

    score: str
    rule: str = "trapezoid-21"
    images: int = SCORED


STUDIED: dict[str, StudiedScore] = {
    "S_pri": StudiedScore("s-pri"),
    "S_pri, global": StudiedScore("s-pri-global"),
    "S_pri, normal start": StudiedScore("s-pri-normal"),
    "S_pri, gauss-5": StudiedScore("s-pri", "gauss-5"),
    "S_pri above its start": StudiedScore("s-pri-rise"),
    "sensitivity": StudiedScore("sensitivity"),
    "blind guess": StudiedScore("blind-guess"),
    "brief attack, 8 steps": StudiedScore("brief-attack-8-class-mean", images=8),
    "brief attack, 24 steps, 4 images": StudiedScore("brief-attack-24", images=4),
    "brief attack, 12 steps, 4 images": StudiedScore("brief-attack-12", images=4),
    "brief attack, 6 steps, 8 images": StudiedScore("brief-attack", images=8),
}
"""By the names in the journal and in the table."""


@dataclass(frozen=True, eq=False)
class StudyInputs:
    """The inputs of all scores on one model in one phase; each score is made at its first use."""

    inputs: ScoreInputs
    made: dict[str, Score] = field(default_factory=dict, init=False)

    def find(self, name: str) -> Score:
        if name not in self.made:
            studied = STUDIED[name]
            self.made[name] = find_score(studied.score).make(self.inputs, studied.rule)
        return self.made[name]


@dataclass(frozen=True)
class ScoreCell:
    """One score of one policy."""

    model: str
    phase: str
    policy: str
    score: str
    loss: str = LOSS


@dataclass(frozen=True, eq=False)
class StudiedScoreJob:
    """Score one policy; returns the score of each image, and the processor time of all."""

    inputs: Shared[StudyInputs]
    cell: ScoreCell

    def run(self, report: Report) -> dict[str, Any]:  # noqa: ARG002
        score = self.inputs.get().find(self.cell.score)
        started = time.process_time()
        values = score.score(parse_policy(self.cell.policy), range(STUDIED[self.cell.score].images))
        return {"values": values.tolist(), "seconds": time.process_time() - started}


def identify(line: Mapping[str, Any]) -> object:
    """Tell cells apart; earlier versions named no loss and scored by plain cross-entropy."""
    return {"loss": str(CrossEntropy()), **line["cell"]}, versions_of(line)


def study_policies(seed: int, count: int = POLICIES) -> list[str]:
    """Draw policies of three transformations, as the papers do for their figure, no two of them the same function."""
    source = generator(seed, "score study", "policies")
    policies: dict[str, str] = {}
    while len(policies) < count:
        policy = Policy(tuple(torch.randint(len(CATALOGUE), (3,), generator=source).tolist()))
        policies.setdefault(function_of(policy), str(policy))
    return list(policies.values())


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
        self.attacks = AttackStudy(self.folder, {GREY: self.data}, self.seed)
        self.journal = Journal(self.folder / "scores.jsonl")

    def run(self, models: Sequence[str], policies: Sequence[str], progress: OnProgress) -> None:
        """Score and attack what the journals do not have."""
        for model in models:
            for phase in PHASES:
                self.run_scores(model, phase, policies, progress)
        self.attacks.run(list(attack_cells(models, policies)), progress)

    def run_scores(self, model: str, phase: str, policies: Sequence[str], progress: OnProgress) -> None:
        """Compute every score of every policy, on one model in one phase."""
        with Workers(1) as crew:
            shared = crew.share(self.make_inputs(model, phase))
            cells = [ScoreCell(model, phase, policy, name) for name in STUDIED for policy in policies]
            items = [WorkItem({"cell": asdict(cell), **PRESENT}, StudiedScoreJob(shared, cell)) for cell in cells]
            run_missing(self.journal, items, crew, progress, f"scores on {model}, {phase}", identify)

    def make_inputs(self, model: str, phase: str) -> StudyInputs:
        """Put the weights of a phase, the scored images and public ones together."""
        data = self.data
        spec = ModelSpec(model, data.shape, data.classes, data.mean, data.std)
        built = spec.build(generator(self.seed, "model"))
        built.load_state_dict(self.attacks.weights(Cell("scores", GREY, model, phase, "none", "fast", ()), spec))
        task = Task(built.eval(), parse_loss(LOSS), data.shape, data.classes, data.mean, data.std)
        images = data.test.take(torch.tensor(choose_scored(data, SCORED, self.seed))).batch()
        return StudyInputs(ScoreInputs(task, images, choose_public(data, PUBLIC, self.seed).batch(), self.seed))
