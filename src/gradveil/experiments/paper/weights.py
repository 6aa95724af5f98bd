"""Where the weights of a trained model are, and how they come back."""

from pathlib import Path

from gradveil.client import Weights
from gradveil.data import DataSet
from gradveil.defences import build_defended, parse_arm
from gradveil.experiments.paper.quirks import CIFAR10_MEAN, CIFAR10_STATISTICS, CIFAR10_STD
from gradveil.experiments.paper.units import TrainUnit
from gradveil.losses import Loss, parse_loss
from gradveil.models import ModelSpec
from gradveil.training import load_checkpoint


def weights_at(folder: Path, unit: TrainUnit) -> Path:
    """Say where the weights of a trained model are."""
    return folder / "models" / unit.key / "final.safetensors"


def spec_of(unit: TrainUnit, data: DataSet) -> ModelSpec:
    """Describe the model; one quirk gives it the statistics of other images."""
    odd = CIFAR10_STATISTICS in unit.quirks
    mean, std = (CIFAR10_MEAN, CIFAR10_STD) if odd else (data.mean, data.std)
    return ModelSpec(unit.model, data.shape, data.classes, mean, std)


def load_weights(unit: TrainUnit, phase: str, data: DataSet, folder: Path) -> tuple[ModelSpec, Weights]:
    """Return the weights of a phase: the first ones as they are drawn, or those that training left."""
    if phase == "final":
        loaded = load_checkpoint(weights_at(folder, unit))
        return loaded.spec, loaded.weights
    spec = spec_of(unit, data)
    return spec, build_defended(spec, parse_arm(unit.arm).defences, unit.seed).state_dict()


def loss_of(unit: TrainUnit) -> Loss:
    return parse_loss(unit.training.loss)
