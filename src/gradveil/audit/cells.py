"""The jobs of an audit: train a model under an arm, and attack what a client of that arm releases."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.attacks import Attack
from gradveil.attacks.preflight import preflight
from gradveil.audit.aggregation import aggregate, join, share_out
from gradveil.data import DataSet
from gradveil.defences import Arm, Defence, changes_gradient, defend_batch, defend_model, defend_update
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator, global_state_from
from gradveil.training import TrainingResult, TrainingSettings, is_unfinished, train
from gradveil.training.checkpoint import Weights
from gradveil.types import Batch, Reconstruction, Task, Update
from gradveil.workers import Report


@dataclass(frozen=True, eq=False)
class TrainJob:
    """Train the model under one arm; every arm starts from the same weights.

    In a `folder` the run is kept: it goes on where it was stopped, and one that was finished is not run again.
    """

    spec: ModelSpec
    data: DataSet
    settings: TrainingSettings
    arm: Arm
    phases: tuple[str, ...]
    seed: int
    device: str
    folder: Path | None = None

    def run(self, report: Report) -> TrainingResult:
        model = build_defended(self.spec, self.arm, self.seed)
        return train(
            model,
            self.data,
            self.settings,
            defences=self.arm.defences,
            seed=self.seed,
            phases=self.phases,
            device=self.device,
            folder=self.folder,
            spec=self.spec,
            resume=self.folder is not None and is_unfinished(self.folder),
            progress=lambda state: report(state.step, state.steps),
        )


@dataclass(frozen=True, eq=False)
class Attacked:
    """What one attack made of one image, and what the check before it noticed."""

    reconstruction: Reconstruction
    seconds: float
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class AttackJob:
    """Let each image's client release its update, and attack these updates.

    `batches` holds one batch for each client, as the model is fed it. The attack itself sees a task and updates, and of
    defences and public images only what `known_defences` and `public` tell it. With several `participants` it sees the
    mean of so many clients' updates only, as under secure aggregation.
    """

    spec: ModelSpec
    weights: Weights
    batches: tuple[Batch, ...]
    names: tuple[int, ...]
    arm: Arm
    phase: str
    attack: Attack
    attack_name: str
    share_labels: bool
    seed: int
    device: str
    known_defences: tuple[str, ...] = ()
    public: Batch | None = None
    participants: int = 1

    def run(self, report: Report) -> list[Attacked]:
        model = build_defended(self.spec, self.arm, self.seed)
        model.load_state_dict(self.weights)
        model.eval().to(self.device)
        groups = [
            range(start, min(start + self.participants, len(self.batches)))
            for start in range(0, len(self.batches), self.participants)
        ]
        updates = [
            aggregate([self.release(model, self.batches[place], self.names[place]) for place in group])
            for group in groups
        ]
        task = Task(
            model,
            F.cross_entropy,
            self.spec.shape,
            self.spec.classes,
            self.spec.mean,
            self.spec.std,
            self.known_defences,
            self.public,
            self.participants,
        )
        names = [self.names[group[0]] for group in groups]
        sources = [generator(self.seed, "attack", self.attack_name, name, device=self.device) for name in names]
        fed = [join([self.batches[place] for place in group]) for group in groups]
        # A model that draws, as PRECODE's, draws in the attacker's hands from a stream of its own.
        with global_state_from(generator(self.seed, "attack", self.attack_name, "model", names[0])):
            started = time.perf_counter()
            found = self.attack.attack_many(task, updates, sources, report)
            # Images of a group are attacked together: each is charged its share.
            seconds = (time.perf_counter() - started) / len(self.batches)
            notices = self.check(task, fed[0], updates[0])
        single = [one for result, batch in zip(found, fed, strict=True) for one in share_out(result, batch)]
        return [Attacked(result, seconds, notices) for result in single]

    def check(self, task: Task, batch: Batch, update: Update) -> tuple[str, ...]:
        """Make sure of the attacker's own gradient, on the first update; a defence may change it on purpose."""
        found = preflight(task, to_device(batch, self.device), update)
        return () if changes_gradient(self.arm.defences) else found.notices

    def release(self, model: nn.Module, batch: Batch, name: int) -> Update:
        """Compute exactly what leaves this client."""
        fed = to_device(batch, self.device)
        source = generator(self.seed, "release", self.arm.name, self.phase, name, device=self.device)
        return defend_update(self.arm.defences, model, F.cross_entropy, fed, source, self.share_labels)


def build_defended(spec: ModelSpec, arm: Arm, seed: int) -> nn.Module:
    """Build the model as the arm's defences have it, with its first weights."""
    plain = spec.build(generator(seed, "model"))
    return defend_model(arm.defences, plain, generator(seed, "model", "defences"))


def to_device(batch: Batch, device: str) -> Batch:
    return Batch(batch.images.to(device), batch.labels.to(device))


def feed(
    images: Tensor,
    labels: Tensor,
    defences: Sequence[Defence],
    seed: int,
    arm: str,
    name: int,
    others: Batch | None = None,
) -> Batch:
    """Draw T(x) for one image: the same in every phase and for every attack.

    A defence that mixes images takes what it needs from `others`, the client's images that are not attacked.
    """
    source = generator(seed, "draw", arm, name)
    companions = max((defence.companions for defence in defences), default=0)
    if not companions:
        return defend_batch(defences, Batch(images, labels), source)
    if others is None or len(others) < companions:
        raise SettingsError(f"arm '{arm}' mixes images with {companions} others: give the client so many")
    chosen = torch.randperm(len(others), generator=source)[:companions]
    batch = Batch(torch.cat([images, others.images[chosen]]), torch.cat([labels, others.labels[chosen]]))
    fed = defend_batch(defences, batch, source)
    return Batch(fed.images[:1], fed.labels[:1])
