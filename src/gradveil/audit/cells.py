"""The jobs of an audit: train a model under an arm, and attack what a client of that arm releases."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from gradveil.attacks import Attack
from gradveil.attacks.preflight import preflight
from gradveil.client import local_update
from gradveil.data import DataSet
from gradveil.defences import Arm, Defence, defend_batch, defend_release
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import TrainingResult, TrainingSettings, train
from gradveil.training.checkpoint import Weights
from gradveil.types import Batch, Reconstruction, Task, Update
from gradveil.workers import Report


@dataclass(frozen=True, eq=False)
class TrainJob:
    """Train the model under one arm; every arm starts from the same weights."""

    spec: ModelSpec
    data: DataSet
    settings: TrainingSettings
    arm: Arm
    phases: tuple[str, ...]
    seed: int
    device: str

    def run(self, report: Report) -> TrainingResult:
        model = self.spec.build(generator(self.seed, "model"))
        return train(
            model,
            self.data,
            self.settings,
            defences=self.arm.defences,
            seed=self.seed,
            phases=self.phases,
            device=self.device,
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
    defences and public images only what `known_defences` and `public` tell it.
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

    def run(self, report: Report) -> list[Attacked]:
        model = self.spec.build(generator(self.seed, "model"))
        model.load_state_dict(self.weights)
        model.eval().to(self.device)
        updates = [self.release(model, batch, name) for batch, name in zip(self.batches, self.names, strict=True)]
        task = Task(
            model,
            F.cross_entropy,
            self.spec.shape,
            self.spec.classes,
            self.spec.mean,
            self.spec.std,
            self.known_defences,
            self.public,
        )
        sources = [generator(self.seed, "attack", self.attack_name, name, device=self.device) for name in self.names]
        started = time.perf_counter()
        found = self.attack.attack_many(task, updates, sources, report)
        # Images of a group are attacked together: each is charged its share.
        seconds = (time.perf_counter() - started) / len(found)
        notices = self.check(task, updates[0])
        return [Attacked(result, seconds, notices) for result in found]

    def check(self, task: Task, update: Update) -> tuple[str, ...]:
        """Make sure of the attacker's own gradient, on the first image; a defence at release changes it on purpose."""
        found = preflight(task, to_device(self.batches[0], self.device), update)
        changed = any(type(defence).release is not Defence.release for defence in self.arm.defences)
        return () if changed else found.notices

    def release(self, model: nn.Module, batch: Batch, name: int) -> Update:
        """Compute exactly what leaves this client."""
        fed = to_device(batch, self.device)
        update = local_update(model, F.cross_entropy, fed, share_labels=self.share_labels)
        source = generator(self.seed, "release", self.arm.name, self.phase, name, device=self.device)
        return defend_release(self.arm.defences, update, source)


def to_device(batch: Batch, device: str) -> Batch:
    return Batch(batch.images.to(device), batch.labels.to(device))


def feed(images: Tensor, labels: Tensor, defences: Sequence[Defence], seed: int, arm: str, name: int) -> Batch:
    """Draw T(x) for one image: the same in every phase and for every attack."""
    return defend_batch(defences, Batch(images, labels), generator(seed, "draw", arm, name))
