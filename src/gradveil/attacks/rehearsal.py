"""What clients would release for images that the attacker has itself: examples to learn from."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.client import Client, Step
from gradveil.defences import Defence, defend_batch, defend_release, has_hook
from gradveil.gradients import Tensors, freeze_batch_norm, gradients_apart, parameters_of
from gradveil.rng import global_state_from, split
from gradveil.types import Batch, LocalTraining, Task, Update

ENTRIES = 2**24
"""About so many entries of updates are held at a time."""
MOST = 500


@dataclass(frozen=True, eq=False)
class Released:
    """Updates, every tensor with a leading N, and what the model was fed for them, one after the other."""

    tensors: Tensors
    fed: Batch


class Rehearsal:
    """Compute what clients of the task with `size` images each would release; every call draws afresh.

    Gradients in evaluation mode are computed side by side. Where steps are taken, or a defence computes the gradient
    itself or mixes images, there is a client for each update, who mixes with images of `others`.
    """

    def __init__(self, task: Task, local: LocalTraining, others: Batch, size: int = 1) -> None:
        self.task, self.local, self.size = task, local, size
        self.defences: Sequence[Defence] = task.known_defences
        mixes = any(one.companions for one in self.defences)
        self.together = not (local.takes_steps or local.mode == "train" or mixes or has_hook(self.defences, "compute"))
        copied = copy.deepcopy(task.model).eval()
        self.model = freeze_batch_norm(copied) if self.together else copied
        self.client = Client(copied, local, others if mixes else None)
        self.weights = {name: tensor.clone() for name, tensor in copied.state_dict().items()}
        entries = sum(tensor.numel() for tensor in parameters_of(task.model).values())
        self.chunk = size * max(1, min(MOST // size, ENTRIES // max(1, entries)))
        """How many images to release at a time."""

    def release(self, batch: Batch, generator: torch.Generator) -> Released:
        """Release one update for each `size` images of the batch, in their order."""
        if self.together:
            return self.release_together(batch, generator)
        parts = [self.release_one(part, own) for part, own in self.cut(batch, generator)]
        tensors = {name: torch.stack([part[0].tensors[name] for part in parts]) for name in parts[0][0].tensors}
        return Released(tensors, Batch.join([part[1] for part in parts]))

    def cut(self, batch: Batch, generator: torch.Generator) -> list[tuple[Batch, torch.Generator]]:
        """Cut the batch into those of the clients, each with a generator of its own."""
        parts = [batch.take(slice(at, at + self.size)) for at in range(0, len(batch), self.size)]
        return list(zip(parts, split(generator, len(parts)), strict=True))

    def release_one(self, batch: Batch, generator: torch.Generator) -> tuple[Update, Batch]:
        watched: list[Step] = []
        update = self.client.update(self.weights, batch, self.defences, generator, watch=watched.append)
        # Under independent draws of images a step may see none.
        fed = next((step.fed for step in watched if len(step.fed)), batch)
        return update, fed

    def release_together(self, batch: Batch, generator: torch.Generator) -> Released:
        fed = self.feed(batch, generator)
        computing, releasing = split(generator, 2)
        there, count = fed.to(next(self.model.parameters()).device), len(batch) // self.size
        labels, pixels = there.labels.view(count, -1), there.pixels()
        with torch.no_grad(), global_state_from(computing):
            tensors = gradients_apart(self.model, self.local.loss, pixels.view(count, -1, *pixels.shape[1:]), labels)
        if has_hook(self.defences, "release"):
            tensors = self.release_each(tensors, labels, releasing)
        return Released(tensors, Batch(fed.pixels(), fed.labels))

    def feed(self, batch: Batch, generator: torch.Generator) -> Batch:
        """Defend the images: client by client if one has several or is fed more, since a defence may use the batch."""
        if self.size == 1 or not has_hook(self.defences, "batch"):
            fed = defend_batch(self.defences, batch, generator)
            if len(fed) == len(batch):
                return fed
        return Batch.join([defend_batch(self.defences, part, own) for part, own in self.cut(batch, generator)])

    def release_each(self, tensors: Tensors, labels: Tensor, generator: torch.Generator) -> Tensors:
        """Apply the release hooks to every single update."""
        updates = [
            defend_release(
                self.defences,
                Update({name: tensor[at] for name, tensor in tensors.items()}, self.size, self.local, labels[at]),
                own,
            )
            for at, own in enumerate(split(generator, len(labels)))
        ]
        return {name: torch.stack([update.tensors[name] for update in updates]) for name in tensors}
