"""Training without a server: the same weights and capsules as with one, and a clear end if a participant fails."""

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gradveil.capsule import CapsulePaths, name_capsule, read_capsule, read_truth
from gradveil.errors import GradveilError, SettingsError
from gradveil.federated.exchange import TOPOLOGIES, Topology
from gradveil.federated.outcomes import RoundOutcome
from gradveil.federated.participants import ClientWork, Participants
from gradveil.federated.ring import run_decentralised
from gradveil.federated.server import Server
from gradveil.federated.settings import FederatedSettings
from gradveil.federated.supervisor import NeighbourError
from gradveil.training import accuracy
from gradveil.types import LocalTraining
from tests.federated.small_data import make_data

DATA = make_data()
FEDSGD = FederatedSettings(data="small", model="convnet-2", clients=3, arm="gaussian:0.001", batch_size=4, rounds=3)
FEDAVG = replace(
    FEDSGD, algorithm="fedavg", partition="dirichlet:0.5", local=LocalTraining(epochs=1, batch_size=2, mode="train")
)


def play(settings: FederatedSettings) -> Iterator[tuple[int, dict[str, Tensor], dict[int, ClientWork], Server]]:
    """Run the rounds with a server, in this process; yield each after its step, with the weights that were sent."""
    rounds = settings.count_rounds(DATA)
    participants = Participants(settings, DATA)
    server = Server(participants, rounds)
    for number in range(1, rounds + 1):
        sent = server.weights()
        released = {
            client: participants.client_round(client, number, rounds, sent) for client in range(settings.clients)
        }
        server.apply([one.update for one in released.values()], number)
        yield number, sent, released, server


@pytest.mark.parametrize("settings", [FEDSGD, FEDAVG], ids=["fedsgd", "fedavg"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_weights_are_those_of_a_run_with_a_server(
    tmp_path: Path, settings: FederatedSettings, topology: Topology
) -> None:
    seen: list[tuple[int, int]] = []
    result = run_decentralised(
        settings,
        DATA,
        tmp_path,
        topology=topology,
        progress=lambda outcome, rounds: seen.append((outcome.round, rounds)),
    )
    for number, _, _, server in play(settings):
        tested = accuracy(server.model, DATA.test)
        assert result.rounds[number - 1].test_accuracy in ((tested,) if number == 3 else (tested, None))
    expected = server.weights()
    assert result.weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert result.weights[name].dtype == tensor.dtype
        assert torch.equal(result.weights[name], tensor), name
    assert [outcome.valid for outcome in result.rounds] == [3, 3, 3]
    assert seen == [(number, 3) for number in (1, 2, 3)]
    assert list(tmp_path.iterdir()) == []


def test_the_capsules_are_what_a_neighbour_sees_and_the_truth_stays_with_the_others(tmp_path: Path) -> None:
    run_decentralised(FEDSGD, DATA, tmp_path, topology="ring", rounds=3, capture=(2,), observer=1, keep_truth=True)
    stems = [Path(name_capsule(2, client)).stem for client in (0, 2)]
    kinds = ("json", "safetensors", "truth.safetensors")
    files = sorted(path.name for path in (tmp_path / "capsules").iterdir())
    assert files == [f"{stem}.{kind}" for stem in stems for kind in kinds]
    number, sent, released, _ = list(play(FEDSGD))[1]
    for client in (0, 2):
        path = tmp_path / "capsules" / name_capsule(number, client)
        captured = read_capsule(path)
        assert (captured.client, captured.participants, captured.phase) == (client, 1, "round-2")
        assert captured.update.labels is None
        assert captured.update.images == 4
        assert captured.update.local == FEDSGD.works
        for name, tensor in sent.items():
            assert torch.equal(captured.weights[name], tensor)
        for name, tensor in released[client].update.tensors.items():
            assert torch.equal(captured.update.tensors[name], tensor)
        for ours, theirs in zip(read_truth(CapsulePaths.of(path).truth), released[client].truths, strict=True):
            assert (ours.image, ours.label) == (theirs.image, theirs.label)
            assert torch.equal(ours.transformed, theirs.transformed)


def test_an_update_that_is_too_large_is_dropped_by_everyone_alike(tmp_path: Path) -> None:
    settings = replace(FEDSGD, rounds=1, least_valid=1)
    _, _, released, _ = next(play(settings))
    norms = {
        client: sum(float(tensor.double().square().sum()) for tensor in one.update.tensors.values()) ** 0.5
        for client, one in released.items()
    }
    largest = max(norms, key=lambda client: norms[client])
    result = run_decentralised(replace(settings, largest_norm=norms[largest] * 0.999), DATA, tmp_path, topology="ring")
    assert result.rounds[0].valid == 2
    assert [one.client for one in result.rounds[0].dropped] == [largest]
    assert "norm" in result.rounds[0].dropped[0].reason


def test_a_round_with_too_few_valid_updates_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(GradveilError, match="round 1 stopped: 0 of 3 updates are valid and 2 are needed") as stop:
        run_decentralised(replace(FEDSGD, largest_norm=1e-9), DATA, tmp_path, topology="full")
    assert "\n" not in str(stop.value)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"topology": "star"}, "choose ring or full"),
        ({"capture": (4,)}, "rounds 1 to 3"),
        ({"capture": (0,)}, "rounds 1 to 3"),
        ({"observer": 3}, "give 0 to 2"),
        ({"rounds": 0}, "give 1 or more"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    options: dict[str, object] = {"topology": "ring", **change}
    with pytest.raises(SettingsError, match=reason):
        run_decentralised(FEDSGD, DATA, tmp_path, **options)  # type: ignore[arg-type]


def test_one_participant_has_no_neighbour(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="2 or more"):
        run_decentralised(replace(FEDSGD, clients=1), DATA, tmp_path, topology="ring")


def listening_addresses(process: int) -> set[str]:
    """List the addresses on which a process listens, from the kernel's tables."""
    inodes = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        # A file may be closed while we look.
        with contextlib.suppress(OSError):
            inodes.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    addresses = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        path = Path(f"/proc/{process}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in inodes:
                raw = bytes.fromhex(local.partition(":")[0])
                words = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
                addresses.add(socket.inet_ntop(family, words))
    return addresses


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel's tables are needed")
def test_only_the_loopback_address_listens(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def look(*_: object) -> None:
        seen.extend(listening_addresses(child.pid) for child in multiprocessing.active_children() if child.pid)

    with socket.create_server(("0.0.0.0", 0)):
        assert "0.0.0.0" in listening_addresses(os.getpid()), "the test can see a socket that listens everywhere"
    run_decentralised(replace(FEDSGD, rounds=2), DATA, tmp_path, topology="full", progress=look)
    assert any(seen), "participants listen"
    assert set().union(*seen) <= {"127.0.0.1", "::1"}


def disturb(number: int, rank: int, fault: int) -> Callable[[RoundOutcome, int], None]:
    """Send a signal to one participant after a round."""

    def progress(outcome: RoundOutcome, rounds: int) -> None:
        del rounds
        if outcome.round == number:
            victim = next(one for one in multiprocessing.active_children() if one.name == f"participant {rank}")
            assert victim.pid is not None
            os.kill(victim.pid, fault)

    return progress


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_killed_neighbour_ends_the_run_within_seconds_in_one_line(
    tmp_path: Path, topology: Topology, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gradveil")
    settings = replace(FEDSGD, clients=4, rounds=2000)
    killed_at = []
    kill = disturb(2, 2, signal.SIGKILL)

    def progress(outcome: RoundOutcome, rounds: int) -> None:
        if outcome.round == 2:
            killed_at.append(time.monotonic())
        kill(outcome, rounds)

    with pytest.raises(NeighbourError, match=r"participant 2, in round \d+, was killed by signal 9") as end:
        run_decentralised(settings, DATA, tmp_path, topology=topology, progress=progress)
    assert time.monotonic() - killed_at[0] < 10
    assert "\n" not in str(end.value)
    assert multiprocessing.active_children() == []
    lines = [record.getMessage() for record in caplog.records]
    assert sorted(line[:13] for line in lines) == ["participant 0", "participant 1", "participant 3"]
    assert all("lost participant" in line and "\n" not in line for line in lines)


def test_a_stopped_neighbour_ends_the_run_at_the_time_out(tmp_path: Path) -> None:
    settings = replace(FEDSGD, clients=3, rounds=2000, timeout=3.0)
    with pytest.raises(NeighbourError, match=r"participant 1, in round \d+, did not answer within 3 s"):
        run_decentralised(settings, DATA, tmp_path, topology="ring", progress=disturb(2, 1, signal.SIGSTOP))
    assert multiprocessing.active_children() == []


SCRIPT = """
import multiprocessing, sys
from dataclasses import replace
from pathlib import Path
from gradveil.federated.ring import run_decentralised
from tests.federated.test_ring import DATA, FEDSGD

def progress(*report):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)

if __name__ == "__main__":
    run_decentralised(replace(FEDSGD, rounds=100000), DATA, Path(sys.argv[1]), topology="ring", progress=progress)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the kernel's tables are needed")
def test_no_participant_outlives_a_killed_run(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, script, tmp_path], stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        children = [int(number) for number in run.stdout.readline().split()]
        assert len(children) == 3
        assert all(map(is_running, children))
        run.kill()
    deadline = time.monotonic() + 20
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, children))


def test_no_flower_is_needed() -> None:
    code = "import sys, gradveil.federated.ring; sys.exit(int('flwr' in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
