"""Labels read from an update."""

from dataclasses import dataclass

import torch
from scipy import optimize
from torch import Tensor, nn

from gradveil.errors import KnowledgeError
from gradveil.gradients import parameters_of
from gradveil.types import Task, Update


def head_gradient(task: Task, update: Update) -> Tensor:
    """Return one number per class from the gradient of the last layer: its bias, or its row-summed weights."""
    for tensor in reversed(list(update.tensors.values())):
        if tensor.shape[:1] == (task.classes,):
            return as_gradient(update, tensor.flatten(1).sum(1) if tensor.dim() > 1 else tensor)
    raise KnowledgeError(
        f"no tensor of the update has one entry per class ({task.classes}): "
        "the labels cannot be read from it; share them, or choose an attack that finds them"
    )


def check_labels(task: Task, update: Update) -> None:
    """Raise KnowledgeError if the labels neither came with the update nor can be read from it."""
    if update.labels is None:
        head_gradient(task, update)


def as_gradient(update: Update, tensor: Tensor) -> Tensor:
    """Turn a weight change of several steps into the mean gradient along them."""
    local = update.local
    return tensor / (-local.learning_rate * add_up_steps(update)) if local.takes_steps else tensor


def add_up_steps(update: Update) -> float:
    """Return how many times its rate a client moves along a gradient that stays the same; momentum repeats steps."""
    local, speed, total = update.local, 0.0, 0.0
    for _ in range(local.count_steps(update.images)):
        speed = local.momentum * speed + 1
        total += 1 + local.momentum * speed if local.nesterov else speed
    return total


def read_label(task: Task, update: Update) -> Tensor:
    """Read the label of a single image: the one class whose entry is negative (iDLG, Zhao et al., 2020)."""
    if update.images != 1:
        raise KnowledgeError(f"the update is of {update.images} images: a label can be read this way from 1 image only")
    return head_gradient(task, update).argmin().view(1)


@dataclass(frozen=True, eq=False)
class Head:
    """The last linear layer: its weights, and the gradients of its weights and bias."""

    weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor


def find_head(task: Task, update: Update) -> Head | None:
    """Find the last linear layer with a bias and one row per class."""
    parameters = parameters_of(task.model)
    for name, layer in reversed(list(task.model.named_modules())):
        if isinstance(layer, nn.Linear) and layer.out_features == task.classes:
            weight, bias = f"{name}.weight", f"{name}.bias"
            if weight in update.tensors and bias in update.tensors:
                gradients = (as_gradient(update, update.tensors[key]) for key in (weight, bias))
                return Head(parameters[weight], parameters[bias], *gradients)
    return None


def restore_counts(task: Task, update: Update) -> Tensor:
    """Estimate how many images of each class a batch has, int64 K (after Ma et al., 2023).

    With p the mean probabilities of the images of class c, B times the bias gradient is (P − 1)·n: column c of P holds
    the probabilities that the head gives to the features of class c, and these are the ratio of the gradients of
    weights and bias in row c. Solved for n ≥ 0 with a sum of B, and rounded to whole images.
    """
    head = find_head(task, update)
    if head is None:
        negative = (-head_gradient(task, update)).clamp(min=0).cpu()
        return whole_counts(negative / negative.sum().clamp(min=1e-30) * update.images, update.images)
    share = head.bias_gradient.double().cpu()
    safe = torch.where(share.abs() > 1e-12, share, torch.full_like(share, 1e-12))
    features = head.weight_gradient.double().cpu() / safe[:, None]
    columns = (features @ head.weight.double().cpu().T + head.bias.double().cpu()).softmax(1).T
    system = columns - torch.eye(task.classes, dtype=torch.float64)
    # The last row, heavily weighted, asks for a sum of B.
    weight = 10.0
    matrix = torch.cat([system, torch.full((1, task.classes), weight, dtype=torch.float64)])
    wanted = torch.cat([share * update.images, share.new_tensor([weight * update.images])])
    solution, _ = optimize.nnls(matrix.numpy(), wanted.numpy())
    return whole_counts(torch.from_numpy(solution), update.images)


def whole_counts(estimate: Tensor, images: int) -> Tensor:
    """Round estimates to whole numbers that sum to `images`, by largest remainders.

    >>> whole_counts(torch.tensor([1.8, 0.9, 0.3]), 3)
    tensor([2, 1, 0])
    """
    estimate = estimate.double() * images / estimate.double().sum().clamp(min=1e-30)
    counts = estimate.floor().long()
    missing = images - int(counts.sum())
    counts[(estimate - counts).argsort(descending=True)[:missing]] += 1
    return counts


def restore_labels(task: Task, update: Update) -> Tensor:
    """Read the labels of a batch, repeats included; their order cannot be known, so they are sorted."""
    return torch.arange(task.classes).repeat_interleave(restore_counts(task, update)).to(update.device)


def find_labels(task: Task, update: Update) -> Tensor:
    """Take the labels that came with the update, or read them from it."""
    if update.labels is not None:
        return update.labels.to(torch.int64)
    return read_label(task, update) if update.images == 1 else restore_labels(task, update)
