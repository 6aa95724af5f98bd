"""Centralised training: settings as values, named phases, exact resumption."""

from gradveil.training.checkpoint import Checkpoint, Weights, check_fit, load_checkpoint, save_checkpoint
from gradveil.training.curves import Epoch, read_curves
from gradveil.training.enough import train_enough
from gradveil.training.estimate import estimate_training
from gradveil.training.given import GivenWeights, load_given
from gradveil.training.loop import TrainingProgress, TrainingResult, accuracy, train
from gradveil.training.own import train_model
from gradveil.training.phases import GIVEN, Phase, parse_phase, phase_steps
from gradveil.training.settings import BRIEF, FAST, PAPER, RECIPES, TrainingSettings
from gradveil.training.state import is_unfinished

__all__ = [
    "BRIEF",
    "FAST",
    "GIVEN",
    "PAPER",
    "RECIPES",
    "Checkpoint",
    "Epoch",
    "GivenWeights",
    "Phase",
    "TrainingProgress",
    "TrainingResult",
    "TrainingSettings",
    "Weights",
    "accuracy",
    "check_fit",
    "estimate_training",
    "is_unfinished",
    "load_checkpoint",
    "load_given",
    "parse_phase",
    "phase_steps",
    "read_curves",
    "save_checkpoint",
    "train",
    "train_enough",
    "train_model",
]
