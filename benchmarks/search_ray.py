"""Two Ray nodes of one processor each against one worker: the same search, timed by the clock.

The nodes are started on this machine, so it needs two free cores. Start-up of the cluster is not counted; what a worker
does at its first job (loading the models) is, on both sides. `python -m benchmarks.search_ray --quick` tries it.
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from gradveil import data
from gradveil.errors import SettingsError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.search import Outcome, SearchSettings, run_search
from gradveil.training import Checkpoint
from gradveil.workers import Crew, Ray, Workers

FULL = SearchSettings(
    model="resnet20-1",
    strategy="random",
    candidates=80,
    images=40,
    accuracy_threshold="none",
)
QUICK = replace(FULL, model="lenet-relu", candidates=20, images=16)
WAIT_SECONDS = 120


def start_node(*options: str) -> "subprocess.Popen[bytes]":
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--node-ip-address=127.0.0.1"]
    limits = ["--num-cpus=1", "--object-store-memory=500000000", "--disable-usage-stats"]
    return subprocess.Popen(
        [*command, *limits, *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextlib.contextmanager
def two_nodes() -> Iterator[Ray]:
    """Start two nodes on this machine and join them; they are killed afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Ray's sockets lie in this folder, and their paths must be short.
    folder = tempfile.mkdtemp(prefix="ray-")
    nodes = [start_node("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")]
    try:
        crew = join(f"127.0.0.1:{port}")
        nodes.append(start_node(f"--address=127.0.0.1:{port}"))
        while crew.ray.cluster_resources().get("CPU", 0) < 2:
            time.sleep(0.2)
        with crew:
            yield crew
    finally:
        for node in nodes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        shutil.rmtree(folder, ignore_errors=True)


def join(address: str) -> Ray:
    """Join a cluster that is starting."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return Ray(address)
        except SettingsError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def run(settings: SearchSettings, crew: Crew) -> tuple[Outcome, float]:
    """Search with a crew, from nothing; returns the time by the clock, too."""
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec(settings.model, sample.shape, sample.classes, sample.mean, sample.std)
    checkpoint = Checkpoint(spec.build(generator(1, "model")).state_dict(), spec, {})
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        result = run_search(settings, sample, Path(folder) / "search", workers=crew, checkpoint=checkpoint)
        return result.outcome, time.monotonic() - started


def main(words: Sequence[str] = ()) -> None:
    """Print both times and the speed-up."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_ray", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small one, to try the benchmark itself")
    parser.add_argument("--candidates", type=int)
    chosen = parser.parse_args(list(words))
    settings = QUICK if chosen.quick else FULL
    settings = settings if chosen.candidates is None else replace(settings, candidates=chosen.candidates)
    torch.set_num_threads(1)
    with Workers(1) as alone:
        expected, slow = run(settings, alone)
    with two_nodes() as crew:
        outcome, fast = run(settings, crew)
    same = "the same outcome to the bit" if outcome == expected else "ANOTHER OUTCOME"
    print(f"{settings.model}, {settings.candidates} candidates, {settings.images} images, every score in full")
    print(f"one worker {slow:.0f} s, two Ray nodes of one processor {fast:.0f} s; {same}")
    print(f"search on Ray: {slow / fast:.2f}x over one worker (n=1)")


if __name__ == "__main__":
    main(sys.argv[1:])
