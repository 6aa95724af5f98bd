"""A round: what was released, with all that the attacker may know of it, and the truth that it must not know."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradveil.client import Step, Weights
from gradveil.defences import Defence, build_defended
from gradveil.models import ModelSpec
from gradveil.types import Batch, Place, Task, Update, to_pixels


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


@dataclass(frozen=True, eq=False)
class Truth:
    """What the client alone knows of one of its images, and the audit: x and T(x) as float 1×C×H×W, and the label.

    T(x) is what the model was fed, the first time if it was fed the image several times. `fed_label` is the label that
    was fed with T(x), where a defence changes it.
    """

    image: int
    label: int
    original: Tensor
    transformed: Tensor
    fed_label: int


@dataclass(frozen=True, eq=False)
class Captured:
    """A round and the truth about each of its images, in the order in which the clients hold them."""

    round: Round
    truths: tuple[Truth, ...]

    def transformed(self) -> Batch:
        """Return what the model was fed, all images of the round together."""
        labels = torch.tensor([truth.fed_label for truth in self.truths])
        return Batch(torch.cat([truth.transformed for truth in self.truths]), labels)


def find_truths(places: Sequence[int], batch: Batch, steps: Sequence[Step]) -> list[Truth]:
    """Find what the model was fed for each image of a client; one that no step drew was fed as it is.

    `places` are the positions of the images in their data set.
    """
    first: dict[int, tuple[Tensor, int]] = {}
    for step in steps:
        pixels = step.fed.pixels().cpu()
        for row, place in enumerate(step.places.tolist()):
            first.setdefault(place, (pixels[row : row + 1], int(step.fed.labels[row])))
    truths = []
    for row, image in enumerate(places):
        original, label = to_pixels(batch.images[row : row + 1]), int(batch.labels[row])
        transformed, fed_label = first.get(row, (original, label))
        truths.append(Truth(image, label, original, transformed, fed_label))
    return truths


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


def mean_buffer(updates: list[Update], name: str) -> Tensor:
    buffers = [update.buffers[name] for update in updates if update.buffers is not None]
    return torch.stack([buffer.double() for buffer in buffers]).mean(0).to(buffers[0].dtype)
