"""A round: what was released, with all that the attacker may know of it."""

from dataclasses import dataclass

import torch

from gradveil.client import Weights
from gradveil.defences import Defence, build_defended
from gradveil.models import ModelSpec
from gradveil.types import Batch, Place, Task, Update


@dataclass(frozen=True, eq=False)
class Round:
    """One release: of one client, or of several whose updates were aggregated.

    `weights` are those that were sent to the clients, buffers included. `model_defences` changed the model before the
    training, which everyone knows. `known_defences` are those that the attacker is told of. `phase` and `client` name
    the round.
    """

    spec: ModelSpec
    model_defences: tuple[Defence, ...]
    weights: Weights
    update: Update
    known_defences: tuple[Defence, ...]
    participants: int
    phase: str
    client: int

    def task(self, public: Batch | None, device: Place) -> Task:
        """Put together what the attacker knows, on `device`; the model is in evaluation mode."""
        model = build_defended(self.spec, self.model_defences, 0)
        model.load_state_dict(dict(self.weights))
        spec = self.spec
        task = Task(
            model.eval(),
            self.update.local.loss,
            spec.shape,
            spec.classes,
            spec.mean,
            spec.std,
            self.known_defences,
            public,
            self.participants,
        )
        return task.to(device)


def aggregate(updates: list[Update]) -> Update:
    """Take the mean of clients' updates of equally many images: all that secure aggregation leaves to the server.

    Buffers are averaged as floats and get their types back.
    """
    if len(updates) == 1:
        return updates[0]
    first = updates[0]
    labels = [update.labels for update in updates if update.labels is not None]
    return Update(
        {name: torch.stack([update.tensors[name] for update in updates]).mean(0) for name in first.tensors},
        sum(update.images for update in updates),
        first.local,
        torch.cat(labels) if len(labels) == len(updates) else None,
        None if first.buffers is None else {name: mean_buffer(updates, name) for name in first.buffers},
    )


def mean_buffer(updates: list[Update], name: str) -> torch.Tensor:
    buffers = [update.buffers[name] for update in updates if update.buffers is not None]
    return torch.stack([buffer.double() for buffer in buffers]).mean(0).to(buffers[0].dtype)
