"""How long an audit will take, from a short probe on this machine."""

import math
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace

import torch

from gradveil.attacks import Attack
from gradveil.audit.audit import PUBLIC, Audit
from gradveil.audit.budget import measure_rate
from gradveil.client import Client
from gradveil.machine import Estimate, threads, time_call
from gradveil.rng import generator

PROBE_STEPS = 3


def estimate_audit(audit: Audit, workers: int) -> Estimate:
    """Count the cells, the attacks on one image and the gradients of an audit that stops nowhere early, and time it."""
    settings = audit.settings
    models = len(audit.arms) * len(settings.phases)
    cells, images = models * len(audit.attacks), settings.images + settings.canaries
    gradients = models * sum(count_attacked(audit, one) * one.gradients for one in audit.attacks.values())
    steps = count_training_steps(audit)
    jobs = cells * math.ceil(settings.images / max(settings.group, settings.images_per_round))
    seconds = 0.0
    if gradients:
        rate = measure_rate(*audit.probe(), settings.threads, PROBE_STEPS, repeats=2)
        seconds += gradients / rate / max(1, min(workers, jobs))
    if steps:
        seconds += steps * time_training_step(audit) / max(1, min(workers, len(audit.arms)))
    counts = {"cells": cells, "attacks on one image": cells * images, "gradients": gradients, "training steps": steps}
    return Estimate(counts, seconds, tuple(name_uncounted(audit.attacks)))


def count_attacked(audit: Audit, attack: Attack) -> int:
    """Count the images that an attack is run on in a cell, with those that it rehearses on."""
    settings = audit.settings
    return settings.images + settings.canaries + (attack.rehearsed_images if settings.images_per_round == 1 else 0)


def name_uncounted(attacks: Mapping[str, Attack]) -> Iterator[str]:
    """Name the attacks whose time is not in the estimate, or not all of it."""
    stepless = [name for name, attack in attacks.items() if attack.gradients == 0]
    learning = [name for name, attack in attacks.items() if name not in stepless and attack.public_images > PUBLIC]
    if stepless:
        yield f"{', '.join(stepless)}: takes no steps; its time is not in the estimate"
    if learning:
        yield f"{', '.join(learning)}: learns on public images first; that time is not in the estimate"


def count_training_steps(audit: Audit) -> int:
    """Count the steps of all trainings before the attacks."""
    if set(audit.trained_phases) <= {"init"}:
        return 0
    training = audit.settings.training
    images = len(audit.data.train) - audit.reserved
    return len(audit.arms) * training.epochs * training.steps_per_epoch(images)


def time_training_step(audit: Audit) -> float:
    """Time one step of the training without a defence."""
    training, images = audit.settings.training, audit.data.train
    size = min(training.batch_size, len(images))
    batch = images.take(torch.arange(size)).batch()
    client = Client(deepcopy(audit.model), replace(training.local(), batch_size=size))
    weights = client.model.state_dict()
    with threads(audit.settings.threads):
        return time_call(lambda: client.update(weights, batch, (), generator(0, "estimate")))
