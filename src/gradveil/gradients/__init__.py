"""Gradients of single images and of batches: the engine under DP-SGD, the scores and the attacks."""

from gradveil.gradients.batch_norm import (
    BATCH_NORM,
    FrozenBatchNorm,
    batch_dependent,
    find_dropout,
    forget_statistics,
    freeze_batch_norm,
)
from gradveil.gradients.folded import fold_batch_norm
from gradveil.gradients.functional import Tensors, gradient, gradients_apart, loss_of_parameters, parameters_of
from gradveil.gradients.per_image import PerImageGradients, choose_gradients
from gradveil.gradients.recorded import Recorder

__all__ = [
    "BATCH_NORM",
    "FrozenBatchNorm",
    "PerImageGradients",
    "Recorder",
    "Tensors",
    "batch_dependent",
    "choose_gradients",
    "find_dropout",
    "fold_batch_norm",
    "forget_statistics",
    "freeze_batch_norm",
    "gradient",
    "gradients_apart",
    "loss_of_parameters",
    "parameters_of",
]
