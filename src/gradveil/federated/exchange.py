"""How participants without a server exchange their updates: in a ring, or each with all others.

The participants are processes on one machine. They talk over torch.distributed (gloo), on the loopback interface only.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, distributed, nn

from gradveil.errors import GradveilError, SettingsError
from gradveil.federated.supervisor import START_SECONDS, NeighbourError
from gradveil.types import LocalTraining, Update

Topology = Literal["ring", "full"]
TOPOLOGIES: tuple[Topology, ...] = ("ring", "full")


class Packing:
    """The form of an update on the way: one row of bytes, as long as the model says.

    All participants know the names, shapes and types, so a row holds numbers only, the number of images first. `sizes`
    are the bytes of each part.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = dict(model.named_parameters())
        self.trained = {name: tensor.detach() for name, tensor in parameters.items() if tensor.requires_grad}
        self.buffers = {name: tensor for name, tensor in model.state_dict().items() if name not in parameters}

        tensors = (*self.trained.values(), *self.buffers.values())
        self.sizes = [8, *(tensor.numel() * tensor.element_size() for tensor in tensors)]

    def pack(self, update: Update) -> Tensor:
        """Write an update, without its labels, as one row of bytes."""
        parts = [torch.tensor([update.images])]
        parts += ordered(update.tensors, self.trained)
        parts += ordered(update.buffers or {}, self.buffers)
        return torch.cat([part.detach().cpu().reshape(-1).view(torch.uint8) for part in parts])

    def unpack(self, row: Tensor, local: LocalTraining) -> Update:
        """Read an update from a row."""
        # A copy of each part is aligned for its type.
        parts = iter(part.clone() for part in torch.split(row, self.sizes))
        images = int(next(parts).view(torch.int64))

        def read(expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: next(parts).view(tensor.dtype).view(tensor.shape) for name, tensor in expected.items()}

        return Update(read(self.trained), images, local, None, read(self.buffers) or None)


def ordered(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[Tensor]:
    """Return tensors in the order of the expected ones; other names, shapes or types are refused."""
    if tensors.keys() != expected.keys():
        odd = sorted(tensors.keys() ^ expected.keys())
        raise SettingsError(f"the update and the model differ in {', '.join(odd[:3])}: send an update of this model")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise SettingsError(
                f"the update of '{name}' is {tensor.dtype} {list(tensor.shape)}, the model's is "
                f"{expected[name].dtype} {list(expected[name].shape)}: a defence must keep both"
            )
    return [tensors[name] for name in expected]


class Neighbours:
    """The other participants, as one of them sees them, within `connected`."""

    def __init__(self, topology: Topology, rank: int, count: int, timeout: float) -> None:
        self.topology, self.rank, self.count = topology, rank, count
        self.timeout = timedelta(seconds=timeout)

    def gather(self, own: Tensor) -> dict[int, Tensor]:
        """Return the rows of all participants, one's own included; all rows have the same length."""
        rows = self.pass_round(own) if self.topology == "ring" else self.swap_with_all(own)
        return dict(sorted(rows.items()))

    def pass_round(self, own: Tensor) -> dict[int, Tensor]:
        """Send a row to the right and take one from the left, until every row has been everywhere."""
        left, right = (self.rank - 1) % self.count, (self.rank + 1) % self.count
        rows = {self.rank: own}
        for hop in range(1, self.count):
            row = torch.empty_like(own)
            self.swap({right: rows[(self.rank - hop + 1) % self.count]}, {left: row})
            rows[(self.rank - hop) % self.count] = row
        return rows

    def swap_with_all(self, own: Tensor) -> dict[int, Tensor]:
        others = [rank for rank in range(self.count) if rank != self.rank]
        rows = {rank: torch.empty_like(own) for rank in others}
        self.swap(dict.fromkeys(others, own), rows)
        return {self.rank: own, **rows}

    def swap(self, outgoing: Mapping[int, Tensor], incoming: Mapping[int, Tensor]) -> None:
        """Send and receive at the same time; wait for each neighbour in turn."""
        works = []
        for start, rows in ((distributed.isend, outgoing), (distributed.irecv, incoming)):
            for rank, row in rows.items():
                with self.blaming(rank):
                    works.append((rank, start(row, rank)))
        for rank, work in works:
            assert work is not None, "every participant belongs to the group"
            with self.blaming(rank):
                work.wait(self.timeout)

    @contextmanager
    def blaming(self, rank: int) -> Iterator[None]:
        """Turn an error of gloo into one line that names the neighbour."""
        try:
            yield
        except RuntimeError as error:
            late = "Timed out" in str(error)
            reason = f"it did not answer within {self.timeout.total_seconds():g} s" if late else "its connection closed"
            raise NeighbourError(f"participant {self.rank} lost participant {rank}: {reason}") from error


@contextmanager
def connected(rank: int, count: int, meeting: Path) -> Iterator[None]:
    """Connect this process with the others within the block; the file `meeting` is where they find one another."""
    # Without it gloo binds to the address of the host's name.
    os.environ["GLOO_SOCKET_IFNAME"] = find_loopback()
    # A TCPStore would listen on every interface.
    store = distributed.FileStore(str(meeting), count)  # type: ignore[attr-defined]
    try:
        distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=count, timeout=timedelta(seconds=START_SECONDS)
        )
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise NeighbourError(f"participant {rank} cannot reach the others: {reason}") from error
    try:
        yield
    finally:
        distributed.destroy_process_group()


def find_loopback() -> str:
    """Return the name of the loopback interface: lo on Linux, lo0 on macOS."""
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):
            return name
    raise GradveilError("this machine has no loopback interface: participants without a server need one")
