"""The jobs of a search: what a worker needs, and what it computes."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from gradveil.data import DataSet, choose_public
from gradveil.scores import (
    AccuracyScore,
    Score,
    ScoreInputs,
    choose_accuracy_images,
    choose_privacy_images,
    count_scorable,
    find_score,
)
from gradveil.search.records import to_json
from gradveil.search.scoring_model import ScoringModel
from gradveil.search.settings import SearchSettings
from gradveil.transforms import parse_policy
from gradveil.types import Batch, Task
from gradveil.workers import Report, Shared

ACCURACY_BATCH = 100
PUBLIC = 1000
"""Training images that stand for what anyone can have, for a score that is held against chance."""


@dataclass(frozen=True, eq=False)
class JobInputs:
    """All that scoring needs, the same in every worker.

    `fresh` is the untrained model that S_acc is computed on, batch by batch of `accuracy_images`. Scores are made at
    their first use.
    """

    score: str
    inputs: ScoreInputs
    fresh: nn.Module
    accuracy_images: Batch
    accuracy_batches: int
    device: str = "cpu"
    made: dict[str, Score] = field(default_factory=dict, init=False)

    def privacy_score(self, rule: str) -> Score:
        """Return the score that is searched by, for one quadrature rule."""
        if rule not in self.made:
            self.made[rule] = find_score(self.score).make(self.inputs.to(self.device), rule)
        return self.made[rule]

    @cached_property
    def accuracy_score(self) -> AccuracyScore:
        images = self.accuracy_images.to(self.device)
        return AccuracyScore(
            self.fresh.to(self.device),
            images.images,
            images.labels,
            batch=len(images) // self.accuracy_batches,
            batches=self.accuracy_batches,
            seed=self.inputs.seed,
        )


@dataclass(frozen=True)
class PrivacyJob:
    """Score some policies on some images by one rule."""

    inputs: Shared[JobInputs]
    policies: tuple[str, ...]
    places: tuple[int, ...]
    rule: str

    def run(self, report: Report) -> dict[str, Any]:
        started = time.process_time()
        score = self.inputs.get().privacy_score(self.rule)
        scores = {}
        for number, policy in enumerate(self.policies, 1):
            values = score.score(parse_policy(policy), self.places).tolist()
            scores[policy] = [to_json(value) for value in values]
            report(number, len(self.policies))
        return {"scores": scores, "seconds": time.process_time() - started}


@dataclass(frozen=True)
class AccuracyJob:
    """Compute S_acc of one policy, batch by batch."""

    inputs: Shared[JobInputs]
    policy: str

    def run(self, report: Report) -> dict[str, Any]:  # noqa: ARG002
        started = time.process_time()
        values = list(self.inputs.get().accuracy_score.batch_scores(parse_policy(self.policy)))
        return {
            "accuracy": {self.policy: [to_json(value) for value in values]},
            "seconds": time.process_time() - started,
        }


def make_inputs(settings: SearchSettings, data: DataSet, prepared: ScoringModel) -> JobInputs:
    """Choose the images that are scored: those that `gradveil score` takes, too."""
    scored, batches, size = choose_images(settings, data)
    images = data.test.take(torch.tensor(scored)).batch()
    task = Task(prepared.model, prepared.loss, data.shape, data.classes, data.mean, data.std)
    return JobInputs(
        settings.score,
        ScoreInputs(task, images, choose_public(data, PUBLIC, settings.seed).batch(), settings.seed),
        prepared.fresh,
        data.test.take(torch.tensor(batches)).batch(),
        len(batches) // size,
        settings.device,
    )


def choose_images(settings: SearchSettings, data: DataSet) -> tuple[list[int], list[int], int]:
    """Choose the places of test images for S_pri and for S_acc, and the size of a batch of the latter."""
    size = min(ACCURACY_BATCH, count_scorable(len(data.test)))
    batches = choose_accuracy_images(data, settings.seed, size, settings.accuracy_batches)
    return choose_privacy_images(data, settings.images, settings.seed), batches, size


def leave_out_scored(settings: SearchSettings, data: DataSet) -> DataSet:
    """Leave the scored images out of the test split, for whoever attacks or tests what was found."""
    privacy, accuracy, _ = choose_images(settings, data)
    used = {*privacy, *accuracy}
    left = torch.tensor([place for place in range(len(data.test)) if place not in used])
    return replace(data, test=data.test.take(left))
