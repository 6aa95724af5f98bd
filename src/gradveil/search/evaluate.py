"""The scores as jobs: what a worker needs, what it computes, and which scores there are to search by."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.errors import UnknownNameError
from gradveil.scores import AccuracyScore, PrivacyScore, find_quadrature
from gradveil.scores.blind_guess import BlindGuessScore
from gradveil.scores.brief_attack import BLOCK, BRIEF, BriefAttackScore
from gradveil.scores.privacy import Start, block_size
from gradveil.scores.similarity import Form
from gradveil.transforms import PolicySet, parse_policy
from gradveil.types import Batch, Task
from gradveil.workers import Report, Shared


class Score(Protocol):
    """A score of a policy on single images, lower is more private.

    Bits never depend on which places are asked together.
    """

    def score(self, policy: PolicySet, places: Sequence[int]) -> Tensor:
        """Give the score of the images at `places`, float64."""


@dataclass(frozen=True, eq=False)
class Material:
    """All that scoring needs, the same in every worker: two models, and the images for either score."""

    model: nn.Module
    fresh: nn.Module
    images: Tensor
    labels: Tensor
    accuracy_images: Tensor
    accuracy_labels: Tensor
    accuracy_batches: int
    public: Batch
    score: str
    seed: int
    device: str = "cpu"
    made: "dict[str, Score]" = field(default_factory=dict, init=False)
    fitness: "list[AccuracyScore]" = field(default_factory=list, init=False)

    def privacy(self, rule: str) -> Score:
        """Give the privacy score by one rule, made at its first use."""
        if rule not in self.made:
            self.made[rule] = find_score(self.score).make(self, rule)
        return self.made[rule]

    def accuracy(self) -> AccuracyScore:
        """Give the accuracy score, made at its first use."""
        if not self.fitness:
            images = self.accuracy_images.to(self.device)
            self.fitness.append(
                AccuracyScore(
                    self.fresh.to(self.device),
                    images,
                    self.accuracy_labels.to(self.device),
                    batch=len(images) // self.accuracy_batches,
                    batches=self.accuracy_batches,
                    seed=self.seed,
                )
            )
        return self.fitness[0]


def count_gradients(rule: str) -> int:
    """Count what S_pri of one image costs."""
    return find_quadrature(rule).gradients


def count_together(rule: str) -> int:
    """Tell how many neighbouring images S_pri computes together."""
    return block_size(count_gradients(rule))


@dataclass(frozen=True)
class ScoreKind:
    """A score to search by.

    `rough` and `fine` are the rules that racing begins with, and `errors` says how far each lies from the rule that
    counts: the standard deviation, over policies, of the difference of their means. `gradients` counts what one image
    costs by a rule, `block` how many neighbouring images are computed together. `label` heads its columns, and `unit`
    says what its figures are, where that is not a rule.
    """

    make: Callable[[Material, str], Score]
    rough: str
    fine: str
    errors: Mapping[str, float]
    gradients: Callable[[str], int] = count_gradients
    block: Callable[[str], int] = count_together
    label: str = "S_pri"
    unit: str | None = None


def make_privacy(material: Material, rule: str, form: Form = "layerwise", start: Start = "uniform") -> Score:
    return PrivacyScore(
        material.model.to(material.device),
        material.images.to(material.device),
        material.labels.to(material.device),
        form=form,
        quadrature=rule,
        start=start,
        seed=material.seed,
    )


def make_brief(material: Material, _: str) -> Score:
    """Attack briefly, whatever the rule: it is no integral. The mean colour is that of the public images."""
    public, images = material.public, material.images.to(material.device)
    classes = 1 + int(max(public.labels.max(), material.labels.max()))
    pixels = public.pixels().double()
    mean, std = (tuple(values.tolist()) for values in (pixels.mean((0, 2, 3)), pixels.std((0, 2, 3))))
    shape = (images.shape[1], images.shape[2], images.shape[3])
    task = Task(material.model.eval().to(material.device), F.cross_entropy, shape, classes, mean, std)
    blind = BlindGuessScore(material.images, material.labels, public, classes, material.seed)
    return BriefAttackScore(task, images, material.labels.to(material.device), blind, seed=material.seed)


ROUGH, FINE, EXACT = "lobatto-3", "lobatto-4", "lobatto-7"
ERRORS = {ROUGH: 0.02, FINE: 0.008}
"""Measured on semi-trained lenet-relu, convnet-4 and resnet20-1: 0.008, 0.027, 0.011 and 0.008, 0.008, 0.011."""

SCORES: dict[str, ScoreKind] = {
    "s-pri": ScoreKind(make_privacy, ROUGH, FINE, ERRORS),
    "s-pri-global": ScoreKind(lambda material, rule: make_privacy(material, rule, form="global"), ROUGH, FINE, ERRORS),
    "s-pri-normal": ScoreKind(lambda material, rule: make_privacy(material, rule, start="normal"), ROUGH, FINE, ERRORS),
    "brief-attack": ScoreKind(
        make_brief,
        # Every rule is the same to it.
        EXACT,
        EXACT,
        {},
        # A step costs about three gradients.
        lambda _: 3 * BRIEF.steps,
        lambda _: BLOCK,
        "brief attack",
        f"dB over chance after {BRIEF.steps} steps",
    ),
}


def find_score(name: str) -> ScoreKind:
    if name not in SCORES:
        raise UnknownNameError("score", name, SCORES)
    return SCORES[name]


@dataclass(frozen=True)
class Scored:
    """What a job found, a row for each policy, and the processor time that it took."""

    rows: tuple[tuple[float, ...], ...]
    seconds: float


@dataclass(frozen=True)
class PrivacyJob:
    """Score some policies on some images by one rule."""

    material: Shared[Material]
    policies: tuple[str, ...]
    places: tuple[int, ...]
    rule: str

    def run(self, report: Report) -> Scored:
        started = time.process_time()
        score = self.material.get().privacy(self.rule)
        rows = []
        for number, policy in enumerate(self.policies, 1):
            rows.append(tuple(score.score(parse_policy(policy), self.places).tolist()))
            report(number, len(self.policies))
        return Scored(tuple(rows), time.process_time() - started)


@dataclass(frozen=True)
class AccuracyJob:
    """Take S_acc of some policies, batch by batch."""

    material: Shared[Material]
    policies: tuple[str, ...]

    def run(self, report: Report) -> Scored:
        started = time.process_time()
        score = self.material.get().accuracy()
        rows = []
        for number, policy in enumerate(self.policies, 1):
            rows.append(tuple(score.batch_scores(parse_policy(policy))))
            report(number, len(self.policies))
        return Scored(tuple(rows), time.process_time() - started)
