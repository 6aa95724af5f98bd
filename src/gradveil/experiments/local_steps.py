"""What local training hides and what it does not: the order of images, several rounds, batch normalisation.

Three parts: updates of several local steps with the order of images unknown; several sightings of the same images; and
how near a guess must be to the true image before its update resembles the released one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gradveil.attacks import find_attack
from gradveil.audit import AUDIT_VERSION, Audit, AuditSettings, CapsuleAudit, Scene, Share
from gradveil.client import Simulation
from gradveil.data import IMAGE_CHOICE, DataSet
from gradveil.defences import parse_arm
from gradveil.experiments.versions import CHOICE, KEY
from gradveil.journal import Journal
from gradveil.losses import CrossEntropy
from gradveil.machine import threads
from gradveil.models import ModelSpec
from gradveil.results import canonical
from gradveil.rng import generator
from gradveil.rounds import Captured
from gradveil.study import OnProgress, WorkItem, run_missing
from gradveil.types import LocalTraining, Mode
from gradveil.workers import Report, Workers

JOURNAL = "local-steps.jsonl"
RATE = 0.05
SMALL, NORMALISED = "lenet-relu", "convnet-8"
IMAGES = 32
DEVIATIONS = (0.01, 0.03, 0.1, 0.3)
"""Standard deviations of the noise on a guess, in normalised pixels."""


@dataclass(frozen=True)
class OrderTrial:
    """Clients take `steps` local steps of `batch` images each, in an order that nobody tells; `fast` or `fedavg`."""

    steps: int
    batch: int
    owned: int
    images: int
    attack: str

    @property
    def name(self) -> str:
        return f"{self.steps} steps of {self.batch}, {self.owned} images, {self.attack}"

    def key(self) -> dict[str, Any]:
        return {"part": "order", **asdict(self), KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE}

    def run(self, data: DataSet, report: Report) -> dict[str, Any]:
        """Audit such clients of an untrained network."""
        local = LocalTraining(steps=self.steps, batch_size=self.batch, learning_rate=RATE, shuffle=True)
        settings = AuditSettings(
            model=SMALL,
            arms=("none",),
            phases=("init",),
            attacks=(self.attack,),
            images=self.images,
            images_per_client=self.owned,
            local=local,
            labels="hidden",
            stop_early=False,
        )
        with threads(1):
            found = Audit(settings, data=data).run(progress=lambda _, share: report(round(100 * share), 100))
        seconds = sum(one.processor_seconds for one in found.attacked)
        return {"summary": found.summaries[0].to_record(), "seconds": seconds, "notices": list(found.notices)}


@dataclass(frozen=True)
class SightingTrial:
    """Clients with one image each release a gradient in every round; the server attacks `rounds` rounds together."""

    arm: str
    attack: str
    attack_steps: int
    rounds: int

    @property
    def name(self) -> str:
        return f"{self.arm}, {self.rounds} rounds, {self.attack}"

    def key(self) -> dict[str, Any]:
        return {"part": "sightings", **asdict(self), KEY: AUDIT_VERSION, CHOICE: IMAGE_CHOICE}

    def run(self, data: DataSet, report: Report) -> dict[str, Any]:
        """Let the clients work through the rounds, then attack."""
        captured = capture_rounds(data, self.arm, self.rounds)
        audit = CapsuleAudit(
            {name: one.round for name, one in captured.items()},
            {name: one.truths for name, one in captured.items()},
            data,
            {self.attack: find_attack(self.attack).with_steps(self.attack_steps)},
            together=True,
        )
        with threads(1):
            found = audit.run(progress=lambda _, share: report(round(100 * share), 100))
        return {"summary": found.summaries[0].to_record(), "notices": list(found.notices)}


def capture_rounds(data: DataSet, arm: str, rounds: int) -> dict[str, Captured]:
    """Let 32 clients with a training image each take part in so many rounds of FedSGD."""
    chosen = parse_arm(arm)
    spec = ModelSpec(SMALL, data.shape, data.classes, data.mean, data.std)
    weights = spec.build(generator(0, "model")).state_dict()
    places = torch.randperm(len(data.train), generator=generator(0, "sightings"))[:IMAGES].tolist()
    captured: dict[str, Captured] = {}
    for number in range(1, rounds + 1):
        scene = Scene(spec, weights, chosen, f"round-{number}", LocalTraining(), None, False, True, number)
        shares = [Share((place,), data.train.take(torch.tensor([place])).batch()) for place in places]
        seen = {f"{number}-{share.places[0]}": scene.capture([share], "cpu") for share in shares}
        captured |= seen
        tensors = [one.round.update.tensors for one in seen.values()]
        means = {name: torch.stack([one[name] for one in tensors]).mean(0) for name in tensors[0]}
        weights = {name: value - RATE * means[name] if name in means else value for name, value in weights.items()}
    return captured


@dataclass(frozen=True)
class NearnessTrial:
    """Guesses at several distances from the true image, and how far their gradients are from the true one."""

    model: str
    mode: Mode

    @property
    def name(self) -> str:
        return f"{self.model}, {self.mode} mode"

    def key(self) -> dict[str, Any]:
        return {"part": "nearness", **asdict(self), "images": IMAGES, "deviations": list(DEVIATIONS)}

    def run(self, data: DataSet, report: Report) -> dict[str, Any]:
        """Measure 1 − cosine for single images: of the whole gradient, and of the last layer's."""
        spec = ModelSpec(self.model, data.shape, data.classes, data.mean, data.std)
        local = LocalTraining(mode=self.mode)
        simulation = Simulation(spec.build(generator(0, "model")), CrossEntropy(), local, data.shape)
        sizes = {name: tensor.numel() for name, tensor in simulation.parameters.items()}
        last = sum(list(sizes.values())[-2:])
        places = torch.randperm(len(data.train), generator=generator(0, "nearness"))[:IMAGES]
        whole: list[list[float]] = []
        head: list[list[float]] = []
        with threads(1):
            for count, place in enumerate(places.tolist()):
                batch, source = data.train.take(torch.tensor([place])).batch(), generator(0, "noise", place)
                noise = torch.randn(batch.images.shape, generator=source) * torch.tensor(data.std).view(-1, 1, 1)
                guesses = [batch.pixels(), *(batch.pixels() + deviation * noise for deviation in DEVIATIONS)]
                flat = torch.cat([simulation.flat(one[None], batch.labels[None], sizes).detach() for one in guesses])
                whole.append((1 - torch.cosine_similarity(flat[:1], flat[1:])).tolist())
                head.append((1 - torch.cosine_similarity(flat[:1, -last:], flat[1:, -last:])).tolist())
                report(count + 1, IMAGES)
        return {"whole": whole, "last_layer": head}


Trial = OrderTrial | SightingTrial | NearnessTrial


def nearness() -> Iterator[Trial]:
    for model in (NORMALISED, SMALL):
        yield from (NearnessTrial(model, mode) for mode in ("train", "eval") if model == NORMALISED or mode == "eval")


def order() -> Iterator[Trial]:
    for steps, batch, owned, images in ((5, 1, 5, 35), (4, 2, 8, 32), (1, 8, 8, 32), (5, 8, 40, 40), (25, 1, 5, 35)):
        yield from (OrderTrial(steps, batch, owned, images, attack) for attack in ("fast", "fedavg"))


def sightings() -> Iterator[Trial]:
    for rounds in (1, 2, 4, 8):
        yield SightingTrial("gaussian:1e-2,no-base", "noise-aware", 200, rounds)
        yield SightingTrial("none", "fast", 120, rounds)
        yield SightingTrial("policy:3-1-7+43-18-18,no-base", "policy-aware", 60, rounds)


PARTS = {"nearness": nearness, "order": order, "sightings": sightings}


@dataclass(frozen=True, eq=False)
class TrialJob:
    """Run one trial."""

    trial: Trial
    data: DataSet

    def run(self, report: Report) -> dict[str, Any]:
        return self.trial.run(self.data, report)


def run_local_steps(folder: Path, data: DataSet, parts: Sequence[str], progress: OnProgress) -> None:
    """Run what the journal lacks of the chosen parts."""
    journal = Journal(folder / JOURNAL)
    for part in parts:
        items = [WorkItem(one.key(), TrialJob(one, data), one.name) for one in PARTS[part]()]
        with Workers(1) as crew:
            run_missing(journal, items, crew, progress, part)


def find_line(trial: Trial, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Find what the journal has of a trial."""
    key = trial.key()
    return next(
        (line for line in entries if canonical({name: line.get(name) for name in key}) == canonical(key)),
        None,
    )
