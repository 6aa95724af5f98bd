"""Centralised training: settings as values, named phases, exact resumption."""

from gradveil.training.loop import Epoch, TrainingProgress, TrainingResult, accuracy, train
from gradveil.training.phases import Phase, parse_phase
from gradveil.training.settings import FAST, PAPER, RECIPES, TrainingSettings

__all__ = [
    "FAST",
    "PAPER",
    "RECIPES",
    "Epoch",
    "Phase",
    "TrainingProgress",
    "TrainingResult",
    "TrainingSettings",
    "accuracy",
    "parse_phase",
    "train",
]
