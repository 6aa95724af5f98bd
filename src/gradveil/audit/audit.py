"""The audit: the only place where the true images and the attack's results meet."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradveil.attacks import LEARNED_VERSION, STANDARD_VERSION, Attack, find_attack
from gradveil.audit.budget import count_gradients
from gradveil.audit.canaries import Canaries
from gradveil.audit.cards import find_scale
from gradveil.audit.kept import KeptWork
from gradveil.audit.release import Share
from gradveil.audit.report import AUDIT_VERSION, AuditReport
from gradveil.audit.run import AuditRun, OnProgress
from gradveil.audit.settings import AuditSettings
from gradveil.client import Weights
from gradveil.data import IMAGE_CHOICE, DataSet, choose_attacked, choose_private, choose_public, find_data
from gradveil.defences import AnyArm, build_defended, find_arm
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import phase_steps
from gradveil.types import Batch, LocalTraining, Task
from gradveil.workers import Crew, Workers

PUBLIC = 500
"""How many public images every attack gets; one that learns from them may ask for more."""
OTHERS = 64
"""Images of the clients themselves that are not attacked, for defences that mix images."""


class Audit:
    """An audit, ready to run: every name is looked up, every value checked.

    What is not given as an object is taken by name from the settings. `data` may be a data set of ours, or a torch
    Dataset or DataLoader; `model` an `nn.Module`, whose weights are then the first ones; an arm a defence, a list of
    defences, or a text; an attack an `Attack`, named or not, or a text. `weights` holds weights by phase: the model is
    not trained for these phases, and they serve every arm. `public` holds images that no client has, for all attacks;
    otherwise the attacks get training images. An attack that asks for many gets up to two fifths of these, and then the
    clients train on the others.
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
        public: Batch | None = None,
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
        self.weights = dict(weights or {})
        self.model = self.spec.build(generator(settings.seed, "model"))
        self.reserved = 0 if public is not None else count_reserved(len(self.data.train), named.values())
        self.check()
        self.public = self.take_public(min(PUBLIC, len(self.data.train) // 2)) if public is None else public
        mixes = any(defence.companions for arm in self.arms for defence in arm.defences)
        self.others = self.choose_others() if mixes else None
        self.places = settings.places or choose_attacked(self.data, settings.images, settings.seed)
        if settings.budget is not None and settings.gradients is None:
            self.settings = replace(self.settings, gradients=self.measure_budget(settings.budget))
        self.attacks = {name: self.scale(attack) for name, attack in named.items()}

    def scale(self, attack: Attack) -> Attack:
        """Give an attack the steps or the gradients that are asked for."""
        if self.settings.gradients is not None:
            return attack.with_budget(self.settings.gradients)
        return attack if self.settings.steps is None else attack.with_steps(self.settings.steps)

    def measure_budget(self, seconds: float) -> int:
        """Count the gradients of one image that take so long here, on images that are attacked together."""
        return count_gradients(seconds, *self.probe(), self.settings.threads)

    def probe(self) -> tuple[Task, LocalTraining, list[Batch]]:
        """Make ready an attack on public images that takes as long as one of the audit."""
        settings, spec = self.settings, self.spec
        size = settings.images_per_client
        groups = max(1, min(settings.group, settings.images) // size)
        batches = [self.public.take(slice(0, size))] * groups
        task = Task(self.model, settings.local.loss, spec.shape, spec.classes, spec.mean, spec.std)
        return task, settings.local, batches

    def take_public(self, count: int) -> Batch:
        return choose_public(self.data, count, self.settings.seed).batch()

    def public_for(self, attack: str) -> Batch:
        """Return the public images of an attack: those that are reserved, if it asked for many."""
        asks = self.reserved > 0 and self.attacks[attack].public_images > PUBLIC
        return self.take_public(self.reserved) if asks else self.public

    def clients(self) -> DataSet:
        """Return the data that clients train on: all, but for what is reserved for attacks that learn."""
        if self.reserved == 0:
            return self.data
        count = len(self.data.train) - self.reserved
        return replace(self.data, train=choose_private(self.data, count, self.settings.seed, public=self.reserved))

    def choose_others(self) -> Batch:
        """Choose images for the clients to mix with; the attacker has none of them."""
        front = self.reserved or min(PUBLIC, len(self.data.train) // 2)
        return choose_private(self.data, OTHERS, self.settings.seed, public=front).batch()

    def check(self) -> None:
        """Refuse what cannot be done before anything is trained."""
        settings, test = self.settings, len(self.data.test)
        if settings.images > test or max(settings.places, default=0) >= test:
            raise SettingsError(f"{settings.images} images of {test} test images: ask for fewer, or for other places")
        if settings.canaries:
            find_scale(*self.data.shape[1:])
        for phase, weights in self.weights.items():
            self.check_weights(phase, weights)
        if self.trained_phases:
            training, images = settings.training, len(self.data.train) - self.reserved
            phase_steps(self.trained_phases, training.steps_per_epoch(images), training.epochs)

    def check_weights(self, phase: str, weights: Weights) -> None:
        """Refuse arms that make another model than the one whose weights are given."""
        found = {name: tensor.shape for name, tensor in weights.items()}
        for arm in self.arms:
            wanted = build_defended(self.spec, arm.defences, self.settings.seed).state_dict()
            if {name: tensor.shape for name, tensor in wanted.items()} != found:
                raise SettingsError(
                    f"the weights of the phase '{phase}' do not fit the model under '{arm.name}', which changes it: "
                    "leave that arm out, or give weights that were trained with it"
                )

    @property
    def trained_phases(self) -> tuple[str, ...]:
        """The phases whose weights come from a training."""
        return tuple(phase for phase in self.settings.phases if phase not in self.weights)

    def run(
        self,
        *,
        workers: int | Crew = 1,
        device: str = "cpu",
        progress: OnProgress | None = None,
        models: Path | None = None,
        keep_history: bool = False,
        frames: int = 0,
        kept: KeptWork | None = None,
    ) -> AuditReport:
        """Train under every arm, attack what its clients release, and score it.

        With `models` the training of every arm is kept there, and not repeated the next time. With `keep_history` the
        report's reconstructions hold what they looked like on the way; with `frames` those of so many images of each
        arm, phase and attack, the worst, do. With `kept` every finished job is kept, and not repeated the next time.
        """
        crew = Workers(workers, self.settings.threads) if isinstance(workers, int) else nullcontext(workers)
        with crew as opened:
            run = AuditRun(self, opened, device, progress or (lambda *_: None), keep_history, frames, kept)
            trained = run.train(models)
            return run.attack(trained, run.scorers())

    def shares(self) -> list[tuple[Share, ...]]:
        """Deal the attacked images to clients, and group the clients whose updates are aggregated."""
        size, test = self.settings.images_per_client, self.data.test
        parts = [self.places[start : start + size] for start in range(0, len(self.places), size)]
        clients = [Share(part, Batch(test.images[list(part)], test.labels[list(part)])) for part in parts]
        step = self.settings.participants
        return [tuple(clients[start : start + step]) for start in range(0, len(clients), step)]

    def canaries(self) -> Canaries:
        """Draw the cards that are attacked besides the images."""
        settings, data = self.settings, self.data
        return Canaries.among(self.shares(), settings.canaries, data.shape, settings.seed, len(data.test))


def count_reserved(images: int, attacks: Iterable[Attack]) -> int:
    """Count the training images that no client has, because an attack asks for more public ones than all get."""
    asked = max((attack.public_images for attack in attacks), default=0)
    return min(asked, 2 * images // 5) if asked > PUBLIC else 0


def run_audit(
    settings: AuditSettings,
    data: DataSet,
    *,
    workers: int | Crew = 1,
    device: str = "cpu",
    progress: OnProgress | None = None,
    models: Path | None = None,
) -> AuditReport:
    """Run an audit whose model, arms and attacks are given by name."""
    return Audit(settings, data=data).run(workers=workers, device=device, progress=progress, models=models)


def describe_work(audit: Audit, device: str, command_line: str | None) -> dict[str, Any]:
    """Say what the results of an audit depend on, so that an unfinished one is only resumed as it was begun."""
    data, weights = audit.data, audit.model.state_dict()
    given = [tensor for one in audit.weights.values() for tensor in one.values()]
    content = [data.test.images[list(audit.places)], data.train.labels, data.test.labels, *weights.values(), *given]
    found = hashlib.sha256()
    for tensor in content:
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return {
        "settings": audit.settings.to_record(),
        "audit_version": AUDIT_VERSION,
        "standard_version": STANDARD_VERSION,
        "learned_version": LEARNED_VERSION,
        "image_choice": IMAGE_CHOICE,
        "torch": torch.__version__,
        "device": device,
        "images_and_weights": found.hexdigest(),
        "command_line": command_line,
    }


def find_model(model: str | nn.Module | ModelSpec, data: DataSet) -> ModelSpec:
    """Describe a model that is given by name or as it is."""
    if isinstance(model, ModelSpec):
        return model
    if isinstance(model, nn.Module):
        return ModelSpec.of(model, data.shape, data.classes, data.mean, data.std)
    return ModelSpec(model, data.shape, data.classes, data.mean, data.std)


def name_attacks(attacks: Sequence[str | Attack] | Mapping[str, Attack]) -> dict[str, Attack]:
    """Look attacks up, and name those that are given as objects; a name decides what an attack draws."""
    if isinstance(attacks, Mapping):
        return dict(attacks)
    named = {one if isinstance(one, str) else one.name: find_attack(one) for one in attacks}
    if len(named) < len(attacks):
        raise SettingsError(f"attacks are {', '.join(map(str, attacks))}: name each once, as in {{'first': attack}}")
    return named
