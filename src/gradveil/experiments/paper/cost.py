"""What a plan costs: the units that are missing, and the core-hours they take at the speed of this machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from gradveil import models
from gradveil.attacks import GradientMatching
from gradveil.client import Client
from gradveil.experiments.paper.jobs import make_attack
from gradveil.experiments.paper.scales import CIFAR, FASHION, SAMPLE, TINY, TINY_100
from gradveil.experiments.paper.sources import SMALL_TRAIN
from gradveil.experiments.paper.units import LEARNER, AttackUnit, ScoreUnit, SearchUnit, TrainUnit, Unit, data_of
from gradveil.machine import threads
from gradveil.rng import generator
from gradveil.scores import find_quadrature
from gradveil.types import Batch, LocalTraining, Task, Update

SHAPES = {
    SAMPLE: ((1, 28, 28), 10, SMALL_TRAIN),
    CIFAR: ((3, 32, 32), 100, 50_000),
    FASHION: ((1, 28, 28), 10, 60_000),
    TINY: ((3, 64, 64), 200, 100_000),
    TINY_100: ((3, 64, 64), 200, 20_000),
}
"""The shape of an image, the classes and the training images of each data set."""
BATCH, TARGETS, STEPS = 16, 6, 5
SLOW = 1.0
"""An attack step of so many seconds is timed once only."""
LEARNT, DRAWS = 5000, 4
"""Public images that are learnt from, and how often each is released; the training of the map comes on top."""
SEARCHED_SHARE = 0.25
"""What racing computes of all scores, about."""


@dataclass(frozen=True)
class Speed:
    """Core-seconds of one network on one data set: a gradient of an image in training, a step of an attack."""

    gradient: float
    step: float


@lru_cache(maxsize=64)
def measure_speed(model: str, data: str) -> Speed:
    """Time a training gradient and attack steps on noise, one thread."""
    shape, classes, _ = SHAPES[data]
    half = (0.5,) * shape[0]
    network = models.build(model, shape, classes, half, half, generator(0, "cost"))
    source = generator(0, "cost", "noise")
    images = torch.randint(0, 256, (BATCH, *shape), generator=source, dtype=torch.uint8)
    batch = Batch(images, torch.arange(BATCH) % classes)
    with threads(1):
        worker = Client(network, LocalTraining(mode="train"))
        times = [timed(lambda: worker.update(network.state_dict(), batch, (), generator(0, "cost"))) for _ in range(2)]
        gradient = min(times) / BATCH
        client = Client(network.eval())
        updates = [client.update(network.state_dict(), batch.take(slice(n, n + 1)), (), source) for n in range(TARGETS)]
        task = Task(network, client.local.loss, shape, classes, half, half)
        step = time_attack(task, updates[:1], 1)
        return Speed(gradient, step if step > SLOW else time_step(task, updates))


def time_step(task: Task, updates: Sequence[Update]) -> float:
    """Time a step of the published attack on one of several images that are attacked together.

    Only what more steps add counts: kernels are built in the first one.
    """
    one = min(time_attack(task, updates, 1) for _ in range(2))
    more = time_attack(task, updates, 1 + STEPS)
    return (more - one if more > one else more) / STEPS / len(updates)


def time_attack(task: Task, updates: Sequence[Update], steps: int) -> float:
    attack = GradientMatching().with_steps(steps)
    sources = [generator(0, "cost", number) for number in range(len(updates))]
    return timed(lambda: attack.attack_many(task, updates, sources))


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def count_seconds(unit: Unit) -> float:
    """Estimate the core-seconds of a unit."""
    data = data_of(unit)
    if isinstance(unit, TrainUnit):
        images = SHAPES[data][2] * unit.training.fraction * unit.training.epochs
        return images * measure_speed(unit.model, data).gradient
    speed = measure_speed(unit.model.model, data)
    if isinstance(unit, AttackUnit) and unit.attack == LEARNER:
        return LEARNT * DRAWS * speed.gradient
    if isinstance(unit, AttackUnit):
        return unit.count * make_attack(unit).gradients * speed.step * (unit.epochs or 1)
    if isinstance(unit, SearchUnit):
        return SEARCHED_SHARE * unit.candidates * unit.images * speed.gradient
    assert isinstance(unit, ScoreUnit)
    return unit.images * find_quadrature(unit.quadrature).gradients * speed.gradient


@dataclass(frozen=True)
class Plan:
    """What is left to run of an experiment, beyond what the experiments before it run: counts and core-hours."""

    name: str
    trainings: int
    attacks: int
    scores: int
    done: int
    hours: float


def make_plan(name: str, units: Sequence[Unit], missing: Sequence[Unit]) -> Plan:
    """Count units by kind and add up what they cost."""
    kinds = [type(unit) for unit in missing]
    hours = sum(map(count_seconds, missing)) / 3600
    scores = kinds.count(ScoreUnit) + kinds.count(SearchUnit)
    return Plan(name, kinds.count(TrainUnit), kinds.count(AttackUnit), scores, len(units) - len(missing), hours)
