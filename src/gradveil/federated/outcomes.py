"""What came of a round, and of a run: how many replies were valid, and which were dropped for what reason."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from gradveil.client import Weights
from gradveil.errors import GradveilError, InputError
from gradveil.types import Update

SHOWN = 3


class ReplyError(InputError):
    """A reply that cannot be used."""


def check_update(update: Update, sent: Weights, most: int, largest_norm: float) -> None:
    """Refuse an update that is not finite, of more images than a round has, or larger than `largest_norm`."""
    if update.images > most:
        raise ReplyError(f"it is of {update.images} images: a round of this client has {most}")
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


@dataclass(frozen=True)
class Dropped:
    """A reply that was not used, or did not come; `client` is None if the node never said which one it is."""

    client: int | None
    reason: str

    def __str__(self) -> str:
        return f"{'an unknown client' if self.client is None else f'client {self.client}'}: {self.reason}"


@dataclass(frozen=True)
class RoundOutcome:
    """One round: how many replies were valid, which were dropped, and the mean loss that clients report."""

    round: int
    valid: int
    dropped: tuple[Dropped, ...]
    loss: float | None
    test_accuracy: float | None = None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RoundOutcome":
        return cls(**{**record, "dropped": tuple(Dropped(**one) for one in record["dropped"])})


class TooFewRepliesError(GradveilError):
    """A round with too few valid replies; the run stops."""

    def __init__(self, outcome: RoundOutcome, clients: int, needed: int) -> None:
        reasons = "; ".join(map(str, outcome.dropped[:SHOWN]))
        more = f"; and {len(outcome.dropped) - SHOWN} more" if len(outcome.dropped) > SHOWN else ""
        super().__init__(
            f"round {outcome.round} stopped: {outcome.valid} of {clients} replies are valid and {needed} are needed "
            f"({reasons}{more}); mend the clients and go on with --resume"
        )


@dataclass(frozen=True, eq=False)
class FederatedResult:
    """The final weights, what came of every round, and the seconds that the rounds took."""

    weights: dict[str, Tensor]
    rounds: tuple[RoundOutcome, ...]
    seconds: float

    @property
    def test_accuracy(self) -> float:
        """The accuracy after the last round, which is always tested."""
        accuracy = self.rounds[-1].test_accuracy
        assert accuracy is not None
        return accuracy
