"""The audit: the only place where the true images and the attack's results meet."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradveil.attacks import STANDARD_VERSION, find_attack, with_steps
from gradveil.audit.arms import ArmNotes, describe_arm
from gradveil.audit.cells import Attacked, AttackJob, TrainJob, build_defended, feed
from gradveil.audit.floors import Floors, choose_public, make_floors
from gradveil.audit.rows import Row, Truth, score_cell
from gradveil.audit.settings import AuditSettings
from gradveil.audit.summary import Pooled, Summary, headline, pool_random_policies, summarise
from gradveil.data import DataSet
from gradveil.defences import Arm, parse_arm
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import TrainingResult
from gradveil.training.checkpoint import Weights
from gradveil.training.phases import phase_steps
from gradveil.types import Batch, to_pixels
from gradveil.workers import Workers

PUBLIC = 500
OnProgress = Callable[[str, float], None]
"""Called with the stage and the share of it that is done."""


@dataclass(frozen=True, eq=False)
class Picture:
    """What stands side by side in the report, float C×H×W; `rebuilt` is None where the attack failed."""

    original: Tensor
    transformed: Tensor
    rebuilt: Tensor | None


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The rows with all that is needed to read them."""

    settings: AuditSettings
    rows: tuple[Row, ...]
    summaries: tuple[Summary, ...]
    floors: dict[str, dict[str, str]]
    accuracies: dict[str, float]
    training_seconds: dict[str, float]
    arms: dict[str, ArmNotes]
    pooled: tuple[Pooled, ...]
    class_names: tuple[str, ...]
    needs: dict[str, tuple[str, ...]]
    parameters: int
    notices: tuple[str, ...]
    pictures: tuple[Picture, ...]

    def to_figures(self) -> dict[str, Any]:
        """Give what `audit.json` holds besides settings and environment."""
        return {
            "verdict": headline(self.summaries),
            "summaries": [summary.to_record() for summary in self.summaries],
            "floors": self.floors,
            "test_accuracy": self.accuracies,
            "arms": {name: notes.to_record() for name, notes in self.arms.items()},
            "random_policies": [entry.to_record() for entry in self.pooled],
            "model_parameters": self.parameters,
            "notices": list(self.notices),
            "standard_version": STANDARD_VERSION,
            "attacker_needs": {name: list(needs) for name, needs in self.needs.items()},
            "rows": [row.to_record() for row in self.rows],
        }


def run_audit(
    settings: AuditSettings,
    data: DataSet,
    *,
    workers: int = 1,
    device: str = "cpu",
    progress: OnProgress | None = None,
    models: Path | None = None,
) -> AuditReport:
    """Train under every arm, attack what its clients release, and score it.

    With `models` the training of every arm is kept there, and not repeated the next time.
    """
    if settings.images > len(data.test):
        raise SettingsError(f"{settings.images} images of {len(data.test)} test images: ask for fewer")
    with Workers(workers, settings.threads) as pool:
        run = AuditRun(settings, data, pool, device, progress or (lambda *_: None), models)
        trained = run.train()
        floors = make_floors(
            data,
            run.arms,
            settings.floor_images,
            settings.labels == "known",
            settings.seed,
            lambda share: run.progress("chance floors", share),
        )
        return run.attack(trained, floors)


class AuditRun:
    """One audit under way."""

    def __init__(
        self,
        settings: AuditSettings,
        data: DataSet,
        workers: Workers,
        device: str,
        progress: OnProgress,
        models: Path | None = None,
    ) -> None:
        self.settings, self.data = settings, data
        self.workers, self.device, self.progress, self.models = workers, device, progress, models
        self.spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)
        self.model = self.spec.build(generator(settings.seed, "model"))
        batch_size = min(settings.training.batch_size, len(data.train))
        # A phase after the end is refused here, before anything is trained.
        phase_steps(settings.phases, len(data.train) // batch_size, settings.training.epochs)
        self.arms = [parse_arm(arm) for arm in settings.arms]
        # An aggregate is attacked as a whole.
        self.group = max(1, settings.group // settings.participants) * settings.participants
        self.attacks = {name: with_steps(find_attack(name), settings.steps) for name in settings.attacks}
        public = choose_public(data, min(PUBLIC, settings.floor_images), settings.seed)
        self.public = Batch(public.images, public.labels)
        order = torch.randperm(len(data.test), generator=generator(settings.seed, "attacked images"))
        self.chosen = sorted(order[: settings.images].tolist())

    def train(self) -> dict[str, TrainingResult]:
        """Train one model for each arm, unless only the first weights are attacked."""
        if set(self.settings.phases) == {"init"}:
            return {}
        jobs = [
            TrainJob(
                self.spec,
                self.data,
                self.settings.training,
                arm,
                self.settings.phases,
                self.settings.seed,
                self.device,
                None if self.models is None else self.models / arm.name,
            )
            for arm in self.arms
        ]
        results = self.workers.run(jobs, self.watch("training", len(jobs)))
        return {arm.name: result for arm, result in zip(self.arms, results, strict=True)}

    def attack(self, trained: dict[str, TrainingResult], floors: dict[str, Floors]) -> AuditReport:
        """Attack every arm in every phase with every attack, and score the results."""
        truths = {arm.name: self.truths_of(arm) for arm in self.arms}
        cells = [
            (arm, phase, name) for phase in self.settings.phases for arm in self.arms for name in self.settings.attacks
        ]
        jobs = [
            self.attack_job(arm, phase, name, self.weights(trained, arm, phase), group)
            for arm, phase, name in cells
            for group in grouped(truths[arm.name], self.group)
        ]
        results = iter(self.workers.run(jobs, self.watch("attacking", len(jobs))))
        rows: list[Row] = []
        pictures: list[Picture] = []
        notices: dict[str, None] = {}
        for arm, phase, name in cells:
            attacked = [one for _ in grouped(truths[arm.name], self.group) for one in next(results)]
            rows += score_cell(arm.name, phase, name, truths[arm.name], attacked, floors[arm.name])
            notices |= dict.fromkeys(notice for one in attacked for notice in one.notices)
            pictures += [show(truth, one) for truth, one in zip(truths[arm.name], attacked, strict=True)]
        return self.report(rows, pictures, tuple(notices), trained, floors)

    def report(
        self,
        rows: list[Row],
        pictures: list[Picture],
        notices: tuple[str, ...],
        trained: dict[str, TrainingResult],
        floors: dict[str, Floors],
    ) -> AuditReport:
        summaries = tuple(summarise(rows))
        return AuditReport(
            self.settings,
            tuple(rows),
            summaries,
            {arm: {name: floor.kind for name, floor in vars(found).items()} for arm, found in floors.items()},
            {arm: result.test_accuracy for arm, result in trained.items()},
            {arm: result.seconds for arm, result in trained.items()},
            {arm.name: self.describe(arm, trained.get(arm.name)) for arm in self.arms},
            pool_random_policies(summaries),
            self.data.class_names,
            {name: attack.needs for name, attack in self.attacks.items()},
            sum(parameter.numel() for parameter in self.model.parameters()),
            notices,
            tuple(pictures),
        )

    def describe(self, arm: Arm, trained: TrainingResult | None) -> ArmNotes:
        guarantee = None if trained is None else trained.guarantee
        return describe_arm(arm, self.spec, self.settings.seed, guarantee)

    def truths_of(self, arm: Arm) -> list[Truth]:
        """Draw what the model is fed for each attacked image under this arm."""
        found = []
        for image in self.chosen:
            original, label = self.data.test.images[image : image + 1], self.data.test.labels[image : image + 1]
            fed = feed(original, label, arm.defences, self.settings.seed, arm.name, image, self.public)
            found.append(Truth(image, int(label), to_pixels(original), fed.pixels(), int(fed.labels)))
        return found

    def attack_job(self, arm: Arm, phase: str, attack: str, weights: Weights, group: Sequence[Truth]) -> AttackJob:
        return AttackJob(
            self.spec,
            weights,
            tuple(truth.batch() for truth in group),
            tuple(truth.image for truth in group),
            arm,
            phase,
            self.attacks[attack],
            attack,
            self.settings.labels == "known",
            self.settings.seed,
            self.device,
            tuple(map(str, arm.defences)) if self.settings.knows_defence else (),
            self.public,
            self.settings.participants,
        )

    def weights(self, trained: dict[str, TrainingResult], arm: Arm, phase: str) -> Weights:
        if trained:
            return trained[arm.name].snapshots[phase]
        return build_defended(self.spec, arm, self.settings.seed).state_dict()

    def watch(self, stage: str, jobs: int) -> Callable[[int, int, int], None]:
        """Turn the reports of single jobs into the share of the stage that is done."""
        shares = [0.0] * jobs

        def note(position: int, done: int, total: int) -> None:
            shares[position] = done / total
            self.progress(stage, math.fsum(shares) / jobs)

        return note


def grouped(truths: Sequence[Truth], size: int) -> list[Sequence[Truth]]:
    return [truths[start : start + size] for start in range(0, len(truths), size)]


def show(truth: Truth, attacked: Attacked) -> Picture:
    found = attacked.reconstruction
    rebuilt = found.images[0].cpu() if found.status == "ok" else None
    return Picture(truth.original[0], truth.transformed[0], rebuilt)
