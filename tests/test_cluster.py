"""A search on a Ray cluster of two nodes on this machine, one of which is killed on the way."""

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

import pytest

from gradveil.errors import GradveilError, PolicyError, SettingsError
from gradveil.search import Outcome, SearchSettings, read_records, run_search
from gradveil.search.jobs import PrivacyJob, make_inputs
from gradveil.search.scoring_model import prepare_model
from gradveil.workers import Crew, Ray, Workers
from gradveil.workers.cluster import check_answer
from tests.search.runs import drawn_checkpoint, few_images

pytestmark = pytest.mark.slow
SMALL = SearchSettings(
    model="lenet",
    strategy="random",
    candidates=24,
    keep=4,
    images=16,
    accuracy_threshold="none",
    quadrature="trapezoid-5",
)
WAIT_SECONDS = 120


def start_node(*options: str) -> "subprocess.Popen[bytes]":
    """Start a node with one processor, in a process group of its own."""
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--node-ip-address=127.0.0.1"]
    limits = ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats"]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
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
class Unknown:
    """A job that the nodes cannot import: they have gradveil, not its tests."""

    def run(self, report: object) -> None:
        """Do nothing."""


def run(folder: Path, crew: Crew, on_job: "list[int]", kill: "subprocess.Popen[bytes] | None" = None) -> Outcome:
    """Search with a crew; kill a node after a few jobs."""

    def progress(what: str, done: int, total: int) -> None:  # noqa: ARG001
        on_job.append(done)
        if len(on_job) == 5 and kill is not None:
            kill_node(kill)

    sample = few_images()
    checkpoint = drawn_checkpoint(sample)
    return run_search(SMALL, sample, folder, workers=crew, checkpoint=checkpoint, progress=progress).outcome


def wait_for_nodes(crew: Ray, count: int) -> None:
    """Wait until the cluster has so many nodes: it takes a while to notice who came and who went."""
    deadline = time.monotonic() + WAIT_SECONDS
    while sum(node["Alive"] for node in crew.ray.nodes()) != count:
        assert time.monotonic() < deadline, f"the cluster does not come to have {count} nodes"
        time.sleep(0.2)


def test_a_node_that_is_killed_costs_its_running_jobs_only(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs: list[int] = []
    with Ray(cluster.address) as crew:
        wait_for_nodes(crew, 2)
        found = run(tmp_path / "ray", crew, jobs, kill=cluster.nodes[1])
        wait_for_nodes(crew, 1)
        sample = few_images()
        shared = crew.share(make_inputs(SMALL, sample, prepare_model(drawn_checkpoint(sample), 0)))
        # What goes wrong there is said here in one line.
        with pytest.raises(PolicyError, match=r"^policy '99': .*from 0 to 49$"):
            crew.run([PrivacyJob(shared, ("99",), (0,), "lobatto-3")])
        with pytest.raises(GradveilError, match=r"No module named 'test_cluster'; install .* on every node$"):
            crew.run([Unknown()])
    assert "raylet" not in capsys.readouterr().out
    with Workers(1) as alone:
        expected = run(tmp_path / "alone", alone, [])
    assert found == expected
    # Every job came back once, and the journal holds each.
    assert len(jobs) == read_records(tmp_path / "ray").jobs == read_records(tmp_path / "alone").jobs
