"""The exchange between participants: nothing is lost on the way, and a lost neighbour is named."""

import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

from gradveil.errors import SettingsError
from gradveil.federated.exchange import TOPOLOGIES, Neighbours, Packing, Topology, connected
from gradveil.federated.supervisor import NeighbourError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import LocalTraining, Update

SPEC = ModelSpec("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,))
LOCAL = LocalTraining(mode="train")


def make_update() -> tuple[Packing, Update]:
    packing, source = Packing(SPEC.build(generator(0))), generator(1)
    tensors = {name: torch.randn(tensor.shape, generator=source) for name, tensor in packing.trained.items()}
    buffers = {name: torch.full_like(tensor, 7) for name, tensor in packing.buffers.items()}
    return packing, Update(tensors, 5, LOCAL, None, buffers)


def test_an_update_comes_back_to_the_bit() -> None:
    packing, update = make_update()
    row = packing.pack(update)
    assert len(row) == sum(packing.sizes)
    back = packing.unpack(row, LOCAL)
    assert back.images == 5
    assert back.buffers is not None
    assert update.buffers is not None
    assert {tensor.dtype for tensor in back.buffers.values()} == {torch.float32, torch.int64}
    for ours, theirs in ((back.tensors, update.tensors), (back.buffers, update.buffers)):
        assert list(ours) == list(theirs)
        assert all(
            torch.equal(ours[name], tensor) and ours[name].dtype == tensor.dtype for name, tensor in theirs.items()
        )


def test_a_model_without_buffers_has_none() -> None:
    packing = Packing(torch.nn.Linear(3, 2))
    update = Update({name: torch.ones_like(tensor) for name, tensor in packing.trained.items()}, 1)
    assert packing.unpack(packing.pack(update), LOCAL).buffers is None


@pytest.mark.parametrize("change", ["missing", "shape", "type"])
def test_an_update_of_another_form_is_refused(change: str) -> None:
    packing, update = make_update()
    name = next(iter(update.tensors))
    tensors = dict(update.tensors)
    if change == "missing":
        del tensors[name]
    else:
        tensors[name] = tensors[name].flatten() if change == "shape" else tensors[name].double()
    with pytest.raises(SettingsError, match=name):
        packing.pack(replace(update, tensors=tensors))


def take_part(rank: int, count: int, topology: Topology, meeting: Path, fault: int, pipe: Connection) -> None:
    """Exchange twice; before the second time the last participant sends itself the signal `fault`, if any."""
    torch.set_num_threads(1)
    neighbours = Neighbours(topology, rank, count, timeout=3.0)
    with connected(rank, count, meeting):
        first = neighbours.gather(torch.full((1000,), rank, dtype=torch.uint8))
        if fault and rank == count - 1:
            os.kill(os.getpid(), fault)
        try:
            second = neighbours.gather(torch.full((1000,), 10 + rank, dtype=torch.uint8))
            pipe.send({rank: (int(row.min()), int(second[rank].max())) for rank, row in first.items()})
        except NeighbourError as error:
            pipe.send(str(error))


def run_all(count: int, topology: Topology, folder: Path, fault: int = 0) -> list[object]:
    context = multiprocessing.get_context("forkserver")
    # The processes of other tests here are forked from the same one: it imports for all.
    context.set_forkserver_preload([__name__, "gradveil.federated.ring", "torch._dynamo"])
    pipes, processes = [], []
    for rank in range(count):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=take_part, args=(rank, count, topology, folder / "meeting", fault, there))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    survivors = pipes[:-1] if fault else pipes
    try:
        return [pipe.recv() for pipe in survivors if pipe.poll(60)]
    finally:
        for process in processes:
            process.kill()
            process.join()


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("count", [2, 5])
def test_everyone_gets_every_row_in_order(tmp_path: Path, topology: Topology, count: int) -> None:
    everything = {rank: (rank, 10 + rank) for rank in range(count)}
    answers = run_all(count, topology, tmp_path)
    assert answers == [everything] * count
    assert all(isinstance(answer, dict) and list(answer) == list(range(count)) for answer in answers)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize(("fault", "reason"), [(signal.SIGKILL, "closed"), (signal.SIGSTOP, "within 3 s")])
def test_all_others_are_told_that_a_neighbour_is_lost(
    tmp_path: Path, topology: Topology, fault: int, reason: str
) -> None:
    lines = run_all(3, topology, tmp_path, fault)
    assert len(lines) == 2
    assert all("lost participant" in str(line) and "\n" not in str(line) for line in lines)
    assert any("lost participant 2" in str(line) and reason in str(line) for line in lines)
