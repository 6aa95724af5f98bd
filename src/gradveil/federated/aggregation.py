"""What becomes of the clients' updates: their mean, and the step that it makes; the same with and without a server."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gradveil.client import Weights, make_optimiser
from gradveil.errors import DivergenceError, InputError
from gradveil.federated.participants import copy_tensors
from gradveil.federated.settings import FederatedSettings
from gradveil.types import Update


class ReplyError(InputError):
    """A reply that cannot be used."""


def weighted_mean(updates: Mapping[int, Update]) -> Update:
    """Take the mean of the updates, weighted by their numbers of images and summed in the order of the clients.

    Buffers are averaged as floats and get their types back; whole numbers are rounded. Labels are dropped.
    """
    ordered = [updates[client] for client in sorted(updates)]
    counts = [update.images for update in ordered]
    tensors = mean_tensors([update.tensors for update in ordered], counts)
    buffers = mean_tensors([update.buffers or {} for update in ordered], counts)
    return Update(tensors, sum(counts), ordered[0].local, None, buffers or None)


def mean_tensors(parts: Sequence[Mapping[str, Tensor]], counts: Sequence[int]) -> dict[str, Tensor]:
    """Sum in double precision, one part after the other: the result depends on nothing but their order."""
    means = {}
    for name, first in parts[0].items():
        total = torch.zeros_like(first, dtype=torch.float64)
        for part, count in zip(parts, counts, strict=True):
            total += count * part[name].double()
        mean = total / sum(counts)
        means[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return means


def check_update(update: Update, sent: Weights, largest_norm: float) -> None:
    """Refuse an update that is not finite, or that changes more than `largest_norm` allows."""
    buffers = update.buffers or {}
    for name, tensor in (*update.tensors.items(), *buffers.items()):
        if not torch.isfinite(tensor).all():
            raise ReplyError(f"its '{name}' holds NaN or infinity")
    check_norm("update", update.tensors, largest_norm)
    changes = {name: buffer.double() - sent[name].double() for name, buffer in buffers.items()}
    check_norm("change of the buffers", changes, largest_norm)


def check_norm(what: str, tensors: Mapping[str, Tensor], largest: float) -> None:
    """Refuse tensors whose Euclidean norm, all together, is above `largest`."""
    norm = math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors.values()))
    if not norm <= largest:
        raise ReplyError(f"the norm of its {what} is {norm:.3g}, above {largest:g}")


class ServerState:
    """The weights that the clients train together, and the optimiser that changes them.

    It works in `model` itself. `rounds` is the length of the whole run, which the learning rate depends on.
    """

    def __init__(self, model: nn.Module, settings: FederatedSettings, rounds: int) -> None:
        self.model, self.settings, self.rounds = model, settings, rounds
        self.optimiser = make_optimiser(model, settings.training.local())

    @property
    def weights(self) -> dict[str, Tensor]:
        """A copy of the weights, buffers included."""
        return copy_tensors(self.model.state_dict())

    def apply(self, update: Update, number: int) -> dict[str, Tensor]:
        """Apply the mean update of round `number`, counted from 1, and return the new weights.

        With FedSGD the optimiser takes a step along the mean gradient; with FedAvg the mean change is added.
        """
        if self.settings.algorithm == "fedsgd":
            self.take_step(update, number)
        else:
            self.add_change(update)
        state = self.model.state_dict()
        for name, buffer in (update.buffers or {}).items():
            state[name].copy_(buffer)
        if not all(torch.isfinite(tensor).all() for tensor in state.values()):
            raise DivergenceError(
                f"training diverged in round {number} (a weight is no longer finite): use a smaller learning rate, "
                "less noise, or a smaller largest norm of the updates"
            )
        return self.weights

    def take_step(self, update: Update, number: int) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.training.rate(number - 1, self.rounds)
        for name, parameter in self.model.named_parameters():
            parameter.grad = update.tensors.get(name)
        self.optimiser.step()
        self.optimiser.zero_grad()

    @torch.no_grad()
    def add_change(self, update: Update) -> None:
        for name, parameter in self.model.named_parameters():
            if name in update.tensors:
                parameter.add_(update.tensors[name])
