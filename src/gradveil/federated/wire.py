"""What travels between the server and the clients, as Flower's records.

Down go the weights and the number of the round; up come a gradient or a weight difference, never new weights, the
buffers, and three figures. What comes up is checked here: a reply is data from outside.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gradveil.federated.flower import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from gradveil.federated.outcomes import ReplyError, check_norm
from gradveil.types import LocalTraining, Update

WEIGHTS, ROUND = "weights", "round"
UPDATE, BUFFERS, FIGURES = "update", "buffers", "figures"
HEADER = 4096
"""More bytes than the header of a serialised array has."""


@dataclass(frozen=True, eq=False)
class Reply:
    """What one client released in a round, and the mean loss that it reports."""

    client: int
    update: Update
    loss: float


@dataclass(frozen=True, eq=False)
class Expected:
    """What a reply must look like: `trained` and `buffers` as they were sent, and the largest norm of an update."""

    trained: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    largest_norm: float


def to_arrays(tensors: Mapping[str, Tensor]) -> ArrayRecord:
    """Serialise tensors; names, types and shapes stay, 0-dimensional ones included."""
    return ArrayRecord({name: Array(tensor.detach().cpu().contiguous().numpy()) for name, tensor in tensors.items()})


def to_tensors(arrays: ArrayRecord) -> dict[str, Tensor]:
    """Undo `to_arrays`."""
    return {name: torch.from_numpy(array.numpy()) for name, array in arrays.items()}


def write_instruction(arrays: ArrayRecord, number: int, rounds: int) -> RecordDict:
    """Put together what a client is sent; the records are its own, the bytes in them are shared."""
    return RecordDict({WEIGHTS: ArrayRecord(dict(arrays)), ROUND: ConfigRecord({"round": number, "rounds": rounds})})


def read_instruction(content: RecordDict) -> tuple[dict[str, Tensor], int, int]:
    """Return the weights, the number of the round and the number of rounds."""
    config = content.config_records[ROUND]
    number, rounds = config["round"], config["rounds"]
    if not (isinstance(number, int) and isinstance(rounds, int) and 1 <= number <= rounds):
        raise ReplyError(f"the server asks for round {number!r} of {rounds!r}: both must be whole numbers from 1")
    return to_tensors(content.array_records[WEIGHTS]), number, rounds


def write_reply(client: int, update: Update, loss: float) -> RecordDict:
    """Put together what a client sends."""
    return RecordDict(
        {
            UPDATE: to_arrays(update.tensors),
            BUFFERS: to_arrays(update.buffers or {}),
            FIGURES: MetricRecord({"client": client, "images": update.images, "loss": loss}),
        }
    )


def read_reply(content: RecordDict, expected: Expected, local: LocalTraining) -> Reply:
    """Check every part of a reply and return it; `ReplyError` says what is wrong.

    `local` is how the client works: everyone knows it, so it does not travel.
    """
    if set(content.array_records) != {UPDATE, BUFFERS} or set(content.metric_records) != {FIGURES}:
        raise ReplyError(f"it has the records {', '.join(sorted(content)) or 'none'}, not update, buffers and figures")
    client, images, loss = read_figures(content.metric_records[FIGURES])
    tensors = read_arrays(content.array_records[UPDATE], expected.trained, "update")
    buffers = read_arrays(content.array_records[BUFFERS], expected.buffers, "buffers")
    check_norm("update", tensors, expected.largest_norm)
    changes = {name: buffer.double() - expected.buffers[name].double() for name, buffer in buffers.items()}
    check_norm("change of the buffers", changes, expected.largest_norm)
    return Reply(client, Update(tensors, images, local, None, buffers or None), loss)


def read_client(content: RecordDict) -> int | None:
    """Return the client that a reply says it is from, if it says so."""
    figures = content.metric_records.get(FIGURES)
    client = None if figures is None else figures.get("client")
    return client if isinstance(client, int) else None


def read_figures(figures: MetricRecord) -> tuple[int, int, float]:
    """Return the client, its number of images and its loss."""
    client, images, loss = (figures.get(name) for name in ("client", "images", "loss"))
    if not (isinstance(client, int) and isinstance(images, int) and isinstance(loss, float)):
        raise ReplyError(f"its figures are {dict(figures)}: client and images are whole numbers, loss is a number")
    if images < 1:
        raise ReplyError(f"it is of {images} images: 1 or more are needed")
    if not math.isfinite(loss):
        raise ReplyError(f"its loss is {loss}")
    return client, images, loss


def read_arrays(arrays: ArrayRecord, expected: Mapping[str, Tensor], what: str) -> dict[str, Tensor]:
    """Return tensors with the names, types and shapes that were expected, and finite."""
    if arrays.keys() != expected.keys():
        odd = sorted(arrays.keys() ^ expected.keys())
        raise ReplyError(f"its {what} and the model differ in the names {', '.join(odd[:3])}")
    return {name: read_array(f"{what} '{name}'", arrays[name], tensor) for name, tensor in expected.items()}


def read_array(name: str, array: Array, expected: Tensor) -> Tensor:
    kind = str(expected.dtype).removeprefix("torch.")
    # The size is looked at first: a header of a few bytes can ask for any amount of memory.
    if len(array.data) > expected.numel() * expected.element_size() + HEADER:
        raise ReplyError(f"its {name} has {len(array.data)} bytes, too many for {kind}{list(expected.shape)}")
    if array.dtype != kind or tuple(array.shape) != tuple(expected.shape):
        raise ReplyError(f"its {name} is {array.dtype}{list(array.shape)}, not {kind}{list(expected.shape)}")
    try:
        values = array.numpy()
    except (ValueError, TypeError, EOFError, OSError, MemoryError) as error:
        raise ReplyError(f"its {name} cannot be read: {error}") from error
    if values.dtype != np.dtype(kind) or values.shape != tuple(expected.shape):
        raise ReplyError(f"its {name} holds {values.dtype}{list(values.shape)}, not {kind}{list(expected.shape)}")
    tensor = torch.from_numpy(values)
    if not torch.isfinite(tensor).all():
        raise ReplyError(f"its {name} holds NaN or infinity")
    return tensor
