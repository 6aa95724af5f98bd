"""The audit: the only place where the true images and the attack's results meet."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradveil import data as data_sets
from gradveil.attacks import Attack, find_attack
from gradveil.audit.arm_notes import describe_arm
from gradveil.audit.floors import Floors, make_floors
from gradveil.audit.jobs import Attacked, CellJob, TrainJob
from gradveil.audit.release import Scene, Share
from gradveil.audit.report import AuditReport
from gradveil.audit.scoring import Row, score_cell
from gradveil.audit.settings import AuditSettings
from gradveil.audit.summary import pool_random_policies, summarise
from gradveil.client import Weights
from gradveil.data import DataSet, choose_private, choose_public
from gradveil.defences import Arm, Defence, build_defended, parse_arm
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import TrainingResult, phase_steps
from gradveil.types import Batch
from gradveil.workers import Workers

PUBLIC = 500
OTHERS = 64
"""Images of the clients themselves that are not attacked, for defences that mix images."""
OnProgress = Callable[[str, float], None]
"""Called with the stage and the share of it that is done."""
AnyArm = str | Arm | Defence | Sequence[Defence]
Cell = tuple[Arm, str, str]


class Audit:
    """An audit, ready to run: every name is looked up, every value checked.

    What is not given as an object is taken by name from the settings. `data` may be a data set of ours, or a torch
    Dataset or DataLoader; `model` an `nn.Module`, whose weights are then the first ones; an arm a defence, a list of
    defences, or a text; an attack an `Attack`, named or not, or a text. `weights` holds weights by phase: the model is
    not trained for these phases, and they serve every arm.
    """

    def __init__(
        self,
        settings: AuditSettings | None = None,
        *,
        data: Any = None,
        model: str | nn.Module | ModelSpec | None = None,
        arms: Sequence[AnyArm] | None = None,
        attacks: Sequence[str | Attack] | Mapping[str, Attack] | None = None,
        weights: Mapping[str, Weights] | None = None,
    ) -> None:
        settings = settings or AuditSettings()
        self.data = find_data(settings.data if data is None else data)
        self.spec = find_model(settings.model if model is None else model, self.data)
        self.arms = [find_arm(arm) for arm in (settings.arms if arms is None else arms)]
        named = name_attacks(settings.attacks if attacks is None else attacks)
        self.settings = replace(
            settings,
            data=self.data.name,
            model=self.spec.name,
            arms=tuple(arm.name for arm in self.arms),
            attacks=tuple(named),
        )
        self.attacks = {
            name: attack if settings.steps is None else attack.with_steps(settings.steps)
            for name, attack in named.items()
        }
        self.weights = dict(weights or {})
        self.model = self.spec.build(generator(settings.seed, "model"))
        self.check()
        self.public = choose_public(self.data, min(PUBLIC, settings.floor_images), settings.seed).batch()
        mixes = any(defence.companions for arm in self.arms for defence in arm.defences)
        self.others = self.choose_others() if mixes else None
        self.places = settings.places or choose_places(len(self.data.test), settings.images, settings.seed)

    def choose_others(self) -> Batch:
        """Choose images for the clients to mix with; the attacker has none of them."""
        return choose_private(self.data, OTHERS, self.settings.seed, public=len(self.public)).batch()

    def check(self) -> None:
        """Refuse what cannot be done before anything is trained."""
        settings, test = self.settings, len(self.data.test)
        if settings.images > test or max(settings.places, default=0) >= test:
            raise SettingsError(f"{settings.images} images of {test} test images: ask for fewer, or for other places")
        if self.trained_phases:
            training, images = settings.training, len(self.data.train)
            phase_steps(self.trained_phases, training.steps_per_epoch(images), training.epochs)

    @property
    def trained_phases(self) -> tuple[str, ...]:
        """The phases whose weights come from a training."""
        return tuple(phase for phase in self.settings.phases if phase not in self.weights)

    def run(
        self,
        *,
        workers: int = 1,
        device: str = "cpu",
        progress: OnProgress | None = None,
        models: Path | None = None,
        keep_history: bool = False,
    ) -> AuditReport:
        """Train under every arm, attack what its clients release, and score it.

        With `models` the training of every arm is kept there, and not repeated the next time. With `keep_history` the
        report's reconstructions hold what they looked like on the way.
        """
        with Workers(workers, self.settings.threads) as crew:
            run = AuditRun(self, crew, device, progress or (lambda *_: None), keep_history)
            trained = run.train(models)
            floors = run.find_floors()
            return run.attack(trained, floors)

    def shares(self) -> list[tuple[Share, ...]]:
        """Deal the attacked images to clients, and group the clients whose updates are aggregated."""
        size, test = self.settings.images_per_client, self.data.test
        parts = [self.places[start : start + size] for start in range(0, len(self.places), size)]
        clients = [Share(part, Batch(test.images[list(part)], test.labels[list(part)])) for part in parts]
        step = self.settings.participants
        return [tuple(clients[start : start + step]) for start in range(0, len(clients), step)]


def run_audit(
    settings: AuditSettings,
    data: DataSet,
    *,
    workers: int = 1,
    device: str = "cpu",
    progress: OnProgress | None = None,
    models: Path | None = None,
) -> AuditReport:
    """Run an audit whose model, arms and attacks are given by name."""
    return Audit(settings, data=data).run(workers=workers, device=device, progress=progress, models=models)


class AuditRun:
    """One audit under way."""

    def __init__(
        self, audit: Audit, workers: Workers, device: str, progress: OnProgress, keep_history: bool = False
    ) -> None:
        self.audit, self.settings = audit, audit.settings
        self.workers, self.device, self.progress, self.keep_history = workers, device, progress, keep_history
        self.rounds = audit.shares()
        # A round is attacked as a whole.
        self.size = max(1, self.settings.group // self.settings.images_per_round)

    def train(self, models: Path | None) -> dict[str, TrainingResult]:
        """Train one model for each arm, unless only given weights and the first ones are attacked."""
        audit, settings = self.audit, self.settings
        phases = audit.trained_phases
        if set(phases) <= {"init"}:
            return {}
        jobs = [
            TrainJob(
                audit.spec,
                audit.data,
                settings.training,
                arm,
                phases,
                settings.seed,
                self.device,
                None if models is None else models / arm.name,
            )
            for arm in audit.arms
        ]
        results = self.workers.run(jobs, self.watch("training", len(jobs)))
        return {arm.name: result for arm, result in zip(audit.arms, results, strict=True)}

    def find_floors(self) -> dict[str, Floors]:
        settings = self.settings
        return make_floors(
            self.audit.data,
            self.audit.arms,
            settings.floor_images,
            settings.labels == "known",
            settings.seed,
            lambda share: self.progress("chance floors", share),
        )

    def attack(self, trained: dict[str, TrainingResult], floors: dict[str, Floors]) -> AuditReport:
        """Attack every arm in every phase with every attack, and score the results."""
        settings = self.settings
        cells: list[Cell] = [
            (arm, phase, name) for phase in settings.phases for arm in self.audit.arms for name in settings.attacks
        ]
        jobs = [job for cell in cells for job in self.cell_jobs(cell, trained)]
        results = iter(self.workers.run(jobs, self.watch("attacking", len(jobs))))
        rows: list[Row] = []
        attacked: list[Attacked] = []
        for arm, phase, name in cells:
            images = [one for _ in range(0, len(self.rounds), self.size) for one in next(results)]
            rows += score_cell(arm.name, phase, name, images, floors[arm.name])
            attacked += images
        return self.report(rows, attacked, trained, floors)

    def cell_jobs(self, cell: Cell, trained: dict[str, TrainingResult]) -> list[CellJob]:
        """Cut one arm, phase and attack into jobs."""
        arm, phase, name = cell
        audit, settings = self.audit, self.settings
        scene = Scene(
            audit.spec,
            self.weights(trained, arm, phase),
            arm,
            phase,
            settings.local,
            audit.others,
            settings.labels == "known",
            settings.knows_defence,
            settings.seed,
        )
        groups = [tuple(self.rounds[start : start + self.size]) for start in range(0, len(self.rounds), self.size)]
        return [
            CellJob(scene, group, audit.attacks[name], name, audit.public, self.device, self.keep_history)
            for group in groups
        ]

    def weights(self, trained: dict[str, TrainingResult], arm: Arm, phase: str) -> Weights:
        if phase in self.audit.weights:
            return self.audit.weights[phase]
        if trained:
            return trained[arm.name].snapshots[phase]
        return build_defended(self.audit.spec, arm.defences, self.settings.seed).state_dict()

    def report(
        self,
        rows: list[Row],
        attacked: list[Attacked],
        trained: dict[str, TrainingResult],
        floors: dict[str, Floors],
    ) -> AuditReport:
        summaries = tuple(summarise(rows))
        audit, settings = self.audit, self.settings
        guarantees = {arm: result.guarantee for arm, result in trained.items()}
        return AuditReport(
            settings,
            tuple(rows),
            summaries,
            {arm: {name: floor.kind for name, floor in vars(kinds).items()} for arm, kinds in floors.items()},
            {arm: result.test_accuracy for arm, result in trained.items()},
            {arm: result.seconds for arm, result in trained.items()},
            {
                arm.name: describe_arm(arm, audit.spec, settings.seed, guarantees.get(arm.name), settings.knows_defence)
                for arm in audit.arms
            },
            pool_random_policies(summaries),
            audit.data.class_names,
            {name: attack.needs for name, attack in audit.attacks.items()},
            sum(parameter.numel() for parameter in audit.model.parameters()),
            tuple(dict.fromkeys(notice for one in attacked for notice in one.notices)),
            tuple(attacked),
        )

    def watch(self, stage: str, jobs: int) -> Callable[[int, int, int], None]:
        """Turn the reports of single jobs into the share of the stage that is done."""
        shares = [0.0] * jobs

        def note(position: int, done: int, total: int) -> None:
            shares[position] = done / total
            self.progress(stage, math.fsum(shares) / jobs)

        return note


def find_data(data: Any) -> DataSet:
    """Take a data set of ours as it is; load one by name; read a torch Dataset or DataLoader."""
    if isinstance(data, DataSet):
        return data
    return data_sets.load(data) if isinstance(data, str) else data_sets.from_torch(data)


def find_model(model: str | nn.Module | ModelSpec, data: DataSet) -> ModelSpec:
    """Describe a model that is given by name or as it is."""
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, nn.Module):
        return ModelSpec.of(model, data.shape, data.classes, data.mean, data.std)
    return ModelSpec(model, data.shape, data.classes, data.mean, data.std)


def find_arm(arm: AnyArm) -> Arm:
    """Make an arm of a text, of one defence, or of several in the order in which they act."""
    if isinstance(arm, str):
        return parse_arm(arm)
    if isinstance(arm, Arm):
        return arm
    defences = (arm,) if isinstance(arm, Defence) else tuple(arm)
    return Arm(",".join(map(str, defences)) or "none", defences)


def name_attacks(attacks: Sequence[str | Attack] | Mapping[str, Attack]) -> dict[str, Attack]:
    """Look attacks up, and name those that are given as objects; a name decides what an attack draws."""
    if isinstance(attacks, Mapping):
        return dict(attacks)
    named = {one if isinstance(one, str) else one.name: find_attack(one) for one in attacks}
    if len(named) < len(attacks):
        raise SettingsError(f"attacks are {', '.join(map(str, attacks))}: name each once, as in {{'first': attack}}")
    return named


def choose_places(count: int, images: int, seed: int) -> tuple[int, ...]:
    """Choose the test images that are attacked."""
    order = torch.randperm(count, generator=generator(seed, "attacked images"))
    return tuple(sorted(order[:images].tolist()))
