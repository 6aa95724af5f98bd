"""What a client remembers of the round that it is working on. It stays with the client."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradveil.defences import Defence
from gradveil.errors import DataError
from gradveil.federated.app_model import AppModel
from gradveil.rounds import Truth


@dataclass(eq=False)
class RoundMemory:
    """The images that an app handed over, batch by batch, and what `DefenceMod` noted, if it is there.

    `defences` are those that the update went through, `change` is the change of the weights before them.
    """

    fed: list[Tensor] = field(default_factory=list)
    originals: list[Tensor] = field(default_factory=list)
    labels: list[Tensor] = field(default_factory=list)
    defences: tuple[Defence, ...] = ()
    change: Mapping[str, Tensor] | None = None

    def truths(self, app: AppModel, count: int) -> list[Truth]:
        """Return the truth about the first `count` images: those of the first epoch, as the model was fed them."""
        remembered = sum(map(len, self.labels))
        if remembered < count:
            raise DataError(
                f"the app handed over {remembered} images of {count}: call remember(images, labels) for every batch "
                "of the training loop"
            )
        fed, originals = (app.to_pixels(torch.cat(part)[:count]) for part in (self.fed, self.originals))
        labels = torch.cat(self.labels)[:count].tolist()
        return [
            Truth(row, label, originals[row : row + 1], fed[row : row + 1], label) for row, label in enumerate(labels)
        ]


CURRENT: ContextVar[RoundMemory | None] = ContextVar("round memory", default=None)


@contextmanager
def remembering() -> Iterator[RoundMemory]:
    """Open the memory of one round; mods of the same client share it."""
    memory = CURRENT.get() or RoundMemory()
    token = CURRENT.set(memory)
    try:
        yield memory
    finally:
        CURRENT.reset(token)


def remember(images: Tensor, labels: Tensor, originals: Tensor | None = None) -> None:
    """Hand a batch over to gradveil's mods on this client: images as the model is fed them, N×C×H×W, and labels N.

    `originals` are the same images before a policy, normalised in the same way. Without a mod that uses them, nothing
    is kept.
    """
    memory = CURRENT.get()
    if memory is None:
        return
    if (
        images.dim() != 4
        or labels.shape != images.shape[:1]
        or (originals is not None and len(originals) != len(images))
    ):
        raise DataError(
            f"images of shape {tuple(images.shape)} and labels of shape {tuple(labels.shape)}: they must be N×C×H×W "
            "and N, with as many originals"
        )
    fed = images.detach().cpu().float().clone()
    memory.fed.append(fed)
    memory.originals.append(fed if originals is None else originals.detach().cpu().float().clone())
    memory.labels.append(labels.detach().cpu().to(torch.int64).clone())
