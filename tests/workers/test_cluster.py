"""Jobs on a Ray cluster of two nodes on this machine, one of which is killed while it works."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gradveil
from gradveil.errors import GradveilError, PolicyError, SettingsError
from gradveil.rng import generator
from gradveil.workers import Crew, Job, Ray, Report, Shared, Workers
from gradveil.workers.cluster import check_answer

WAIT_SECONDS = 120
REPOSITORY = Path(__file__).parents[2]


def start_node(*options: str) -> "subprocess.Popen[bytes]":
    """Start a node with one processor, in a process group of its own."""
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--node-ip-address=127.0.0.1"]
    limits = ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats"]
    path = os.pathsep.join(map(str, (Path(gradveil.__file__).parents[1], REPOSITORY)))
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    return subprocess.Popen(
        [*command, *limits, *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_node(node: "subprocess.Popen[bytes]") -> None:
    """Kill everything that belongs to a node at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGKILL)
    node.wait()


@dataclass(eq=False)
class Cluster:
    address: str
    nodes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Ray's sockets lie in this folder, and their paths must be short.
    folder = tempfile.mkdtemp(prefix="ray-")
    made = Cluster(f"127.0.0.1:{port}")
    try:
        made.nodes.append(start_node("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"))
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                check_answer(made.address)
                break
            except SettingsError:
                assert time.monotonic() < deadline, "the head does not start"
                time.sleep(0.2)
        made.nodes.append(start_node(f"--address={made.address}"))
        yield made
    finally:
        for node in made.nodes:
            kill_node(node)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Draw:
    """Draw from a named stream, add a shared value, and leave a mark for each time that the job ran."""

    name: int
    shared: Shared[torch.Tensor]
    marks: Path

    def run(self, report: Report) -> float:  # noqa: ARG002
        (self.marks / f"{self.name}-{os.getpid()}").touch()
        time.sleep(0.3)
        total = self.shared.get().sum() + torch.rand(1000, generator=generator(0, self.name)).sum()
        return float(total) + torch.get_num_threads()


@dataclass(frozen=True)
class Refuse:
    def run(self, report: Report) -> None:  # noqa: ARG002
        raise PolicyError("policy '99': choose an index from 0 to 49")


def run(crew: Crew, marks: Path, kill: "subprocess.Popen[bytes] | None" = None) -> tuple[list[float], list[int]]:
    """Run some jobs; kill a node after a few of them. Return the results and the positions as they came back."""
    marks.mkdir()
    positions: list[int] = []

    def note(position: int, _: float) -> None:
        positions.append(position)
        if len(positions) == 5 and kill is not None:
            kill_node(kill)

    shared = crew.share(torch.rand(1000, generator=generator(0, "shared")))
    return crew.run([Draw(name, shared, marks) for name in range(16)], on_result=note), positions


def wait_for_nodes(crew: Ray, count: int) -> None:
    """Wait until the cluster has so many nodes: it takes a while to notice who came and who went."""
    deadline = time.monotonic() + WAIT_SECONDS
    while sum(node["Alive"] for node in crew.ray.nodes()) != count:
        assert time.monotonic() < deadline, f"the cluster does not come to have {count} nodes"
        time.sleep(0.2)


def make_local_job() -> Job[None]:
    """Make a job of a module that only this process has."""
    module = ModuleType("module_of_this_process")
    exec("class Job:\n    def run(self, report): pass", module.__dict__)
    sys.modules[module.__name__] = module
    job: Job[None] = module.Job()
    return job


@pytest.mark.slow
def test_a_killed_node_costs_only_its_running_jobs(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Ray(cluster.address) as crew:
        wait_for_nodes(crew, 2)
        results, positions = run(crew, tmp_path / "ray", kill=cluster.nodes[1])
        wait_for_nodes(crew, 1)
        # An error of a job is raised here without Ray's wrapping.
        with pytest.raises(PolicyError, match=r"^policy '99': .*from 0 to 49$"):
            crew.run([Refuse()])
        with pytest.raises(GradveilError, match=r"No module named 'module_of_this_process'; install .* on every node$"):
            crew.run([make_local_job()])
    assert "raylet" not in capsys.readouterr().out
    with Workers(1) as alone:
        expected, _ = run(alone, tmp_path / "alone")
    assert results == expected
    assert sorted(positions) == list(range(16))
    # The killed node had one processor, so at most one job was running there.
    assert 16 <= len(list((tmp_path / "ray").iterdir())) <= 17


@pytest.mark.parametrize("address", ["", "127.0.0.1", "host:", "host:port", "host:70000", "ray://host:10001"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="give HOST:PORT"):
        check_answer(address)


def test_an_address_without_a_cluster_is_refused() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with pytest.raises(SettingsError, match="no Ray cluster answers"):
            check_answer(f"127.0.0.1:{port}")
