"""The server of a collaborative training: it combines the updates of a round and takes the step."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gradveil.client import make_optimiser
from gradveil.errors import DivergenceError
from gradveil.federated.participants import Participants, copy_tensors
from gradveil.federated.settings import FederatedSettings
from gradveil.types import LocalTraining, Update


class Server:
    """The weights and the optimiser between the rounds."""

    def __init__(self, participants: Participants, rounds: int) -> None:
        self.settings, self.rounds = participants.settings, rounds
        self.model = participants.build_model()
        self.optimiser = make_optimiser(self.model, works_of(self.settings))

    def weights(self) -> dict[str, Tensor]:
        """Copy the weights and the buffers."""
        return copy_tensors(self.model.state_dict())

    def trained(self) -> dict[str, Tensor]:
        """Return the parameters that clients send updates of; they are the model's own."""
        return {name: value.detach() for name, value in self.model.named_parameters() if value.requires_grad}

    def buffers(self) -> dict[str, Tensor]:
        """Return the buffers that a state dict carries; they are the model's own."""
        parameters = dict(self.model.named_parameters())
        return {name: value for name, value in self.model.state_dict().items() if name not in parameters}

    def apply(self, updates: Sequence[Update], number: int) -> None:
        """Combine the valid updates of round `number`, each weighted by its number of images."""
        shares = [update.images for update in updates]
        means = {name: weighted_mean([update.tensors[name] for update in updates], shares) for name in self.trained()}
        if self.settings.algorithm == "fedavg":
            self.take_step({name: -mean for name, mean in means.items()}, 1.0)
        else:
            self.take_step(means, self.settings.training.rate(number - 1, self.rounds))
        for name, buffer in self.buffers().items():
            buffer.copy_(weighted_mean([(update.buffers or {})[name] for update in updates], shares))
        if not all(torch.isfinite(tensor).all() for tensor in self.model.state_dict().values()):
            raise DivergenceError(
                f"training diverged in round {number} (a weight is no longer finite): use a smaller learning rate, "
                "less noise, or a smaller largest norm of the updates"
            )

    def take_step(self, gradients: Mapping[str, Tensor], rate: float) -> None:
        """Take one step of the optimiser along the mean gradient."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        for name, parameter in self.model.named_parameters():
            parameter.grad = gradients.get(name)
        self.optimiser.step()
        for parameter in self.model.parameters():
            parameter.grad = None


def works_of(settings: FederatedSettings) -> LocalTraining:
    """Return the optimiser of the server: with FedAvg it adds the mean change, with momentum if asked."""
    if settings.algorithm == "fedsgd":
        return settings.training.local()
    return LocalTraining(learning_rate=1.0, momentum=settings.server_momentum)


def weighted_mean(tensors: Sequence[Tensor], shares: Sequence[int]) -> Tensor:
    """Take a weighted mean in float64 and return it in the tensors' type; whole numbers are rounded.

    >>> weighted_mean([torch.tensor(1), torch.tensor(4)], [1, 2])
    tensor(3)
    """
    total = torch.zeros_like(tensors[0], dtype=torch.float64)
    for tensor, share in zip(tensors, shares, strict=True):
        total += tensor.double() * share
    mean = total / sum(shares)
    return (mean if tensors[0].is_floating_point() else mean.round()).to(tensors[0].dtype)
