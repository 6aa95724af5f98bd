"""How long a training will take, from a few steps on this machine."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn

from gradveil.data import DataSet
from gradveil.defences import Defence
from gradveil.machine import Estimate, threads, time_call
from gradveil.training.loop import TrainingRun
from gradveil.training.settings import TrainingSettings


def estimate_training(
    model: nn.Module,
    data: DataSet,
    settings: TrainingSettings,
    defences: Sequence[Defence],
    seed: int,
    device: torch.device | str = "cpu",
) -> Estimate:
    """Count the steps of a training, and time some on a copy of the model; tests between epochs are not counted."""
    with threads(settings.threads):
        run = TrainingRun(deepcopy(model), data, settings, defences, seed, torch.device(device))
        run.model.train()
        seconds = time_call(run.take_step, min(3, run.steps))
    return Estimate({"training steps": run.steps}, run.steps * seconds)
