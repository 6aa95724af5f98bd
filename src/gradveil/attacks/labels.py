"""Labels read from a gradient."""

import torch
from torch import Tensor

from gradveil.errors import KnowledgeError
from gradveil.types import Task, Update


def head_gradient(task: Task, update: Update) -> Tensor:
    """Give one number per class from the gradient of the last layer: its bias, or its row-summed weights."""
    for tensor in reversed(list(update.tensors.values())):
        if tensor.shape[:1] == (task.classes,):
            return tensor.flatten(1).sum(1) if tensor.dim() > 1 else tensor
    raise KnowledgeError(
        f"no tensor of the update has one entry per class ({task.classes}): "
        "the labels cannot be read from it; share them, or choose an attack that finds them"
    )


def read_label(task: Task, update: Update) -> Tensor:
    """Read the label of a single image: the one class whose entry is negative (iDLG, Zhao et al., 2020)."""
    if update.images != 1:
        raise KnowledgeError(f"the update is of {update.images} images: a label can be read this way from 1 image only")
    return head_gradient(task, update).argmin().view(1)


def find_labels(task: Task, update: Update) -> Tensor:
    """Take the labels that came with the update, or read them from it."""
    return read_label(task, update) if update.labels is None else update.labels.to(torch.int64)
