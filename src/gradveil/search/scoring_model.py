"""The model that policies are scored on: of a checkpoint, or trained for the search."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save
from torch import nn

from gradveil.data import DataSet
from gradveil.defences import CropFlip
from gradveil.errors import SettingsError
from gradveil.losses import Loss
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.search.settings import SearchSettings
from gradveil.study import OnProgress
from gradveil.training import Checkpoint, is_unfinished, load_checkpoint, train


@dataclass(frozen=True, eq=False)
class ScoringModel:
    """The weights that S_pri is computed on, the loss they were trained with, and an untrained model for S_acc.

    `digest` is the SHA-256 of the weights.
    """

    spec: ModelSpec
    model: nn.Module
    fresh: nn.Module
    loss: Loss
    digest: str


def prepare_model(checkpoint: Checkpoint, seed: int) -> ScoringModel:
    """Build the model of a checkpoint, and an untrained one of the same kind."""
    fresh = checkpoint.spec.build(generator(seed, "model"))
    digest = hashlib.sha256(save(checkpoint.weights)).hexdigest()
    return ScoringModel(checkpoint.spec, checkpoint.build(), fresh, checkpoint.loss, digest)


def read_checkpoint(source: Path | Checkpoint, model: str, data: DataSet) -> Checkpoint:
    """Load a checkpoint unless it is one already; `model` counts only if it names a person's own factory."""
    checkpoint = load_checkpoint(source, model if ":" in model else None) if isinstance(source, Path) else source
    spec = checkpoint.spec
    if spec.shape != data.shape or spec.classes != data.classes:
        name = source if isinstance(source, Path) else f"the checkpoint of {spec.name}"
        raise SettingsError(
            f"{name} is for images of {spec.shape} in {spec.classes} classes, the data has {data.shape} in "
            f"{data.classes}: choose the data it was trained on"
        )
    return checkpoint


def train_model(settings: SearchSettings, data: DataSet, folder: Path, progress: OnProgress) -> Checkpoint:
    """Train the model; a training that was cut short is resumed, and weights that are there are taken."""
    assert settings.training is not None
    final = folder / "final.safetensors"
    if not (final.exists() and final.with_suffix(".json").exists()):
        spec = ModelSpec(settings.model, data.shape, data.classes, data.mean, data.std)
        train(
            spec.build(generator(settings.seed, "model")),
            data,
            settings.training,
            defences=[CropFlip()],
            seed=settings.seed,
            phases=["final"],
            device=settings.device,
            folder=folder,
            spec=spec,
            resume=is_unfinished(folder),
            progress=lambda now: progress("training the model", now.step, now.steps),
        )
    return load_checkpoint(final, settings.model if ":" in settings.model else None)
