"""The training of a person's own model on their own data, in one call."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from gradveil.data import DataSet, find_data
from gradveil.defences import AnyArm, build_defended, find_arm
from gradveil.models import ModelSpec
from gradveil.training.enough import train_enough
from gradveil.training.loop import TrainingProgress, TrainingResult, train
from gradveil.training.settings import FAST, TrainingSettings


def train_model(
    model: nn.Module | str,
    data: Any,
    *,
    arm: AnyArm = "crop-flip",
    settings: TrainingSettings | None = None,
    epochs: int | None = None,
    test: Any = None,
    phases: Sequence[str] = ("init", "final"),
    folder: str | Path | None = None,
    device: str = "cpu",
    progress: Callable[[TrainingProgress], None] | None = None,
    seed: int = 0,
) -> TrainingResult:
    """Train a copy of a model, from its weights as they are, under an arm as `gradveil.audit` has them.

    `model` takes images in [0, 1]; a name makes a fresh one. `data` and `test` are as in `gradveil.audit`. Without
    `settings` it is the fast recipe, with epochs enough for a small data set unless `epochs` says how many. The trained
    weights are `result.snapshots["final"]`, for `model.load_state_dict`; with a `folder` they are kept there too.
    """
    loaded, chosen = find_data(data, test), find_arm(arm)
    spec = describe_model(model, loaded)
    used = train_enough(FAST, len(loaded.train)) if settings is None else settings
    return train(
        build_defended(spec, chosen.defences, seed),
        loaded,
        used if epochs is None else replace(used, epochs=epochs),
        defences=chosen.defences,
        seed=seed,
        phases=phases,
        device=device,
        folder=None if folder is None else Path(folder),
        spec=spec if spec.module is None else None,
        progress=progress,
    )


def describe_model(model: nn.Module | str, data: DataSet) -> ModelSpec:
    """Describe a model that is given as it is or by name."""
    if isinstance(model, nn.Module):
        return ModelSpec.of(model, data.shape, data.classes, data.mean, data.std)
    return ModelSpec(model, data.shape, data.classes, data.mean, data.std)
