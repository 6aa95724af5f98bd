"""Gradients of single images and of batches: the engine under DP-SGD, the scores and the attacks."""

from gradveil.gradients.batch_norm import BATCH_NORM, batch_dependent, find_dropout, forget_statistics
from gradveil.gradients.folded import fold_batch_norm
from gradveil.gradients.frozen import FrozenBatchNorm, freeze_batch_norm
from gradveil.gradients.functional import Tensors, gradient, gradients_apart, loss_of_parameters, parameters_of
from gradveil.gradients.single import Gradients, choose_gradients

__all__ = [
    "BATCH_NORM",
    "FrozenBatchNorm",
    "Gradients",
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
