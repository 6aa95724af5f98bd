"""Worker processes that die under a command: their jobs are done again, and the result is the same."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from gradveil.stops import list_descendants
from tests.faults.kills import Plan, Reference, Stage, Trial, compare, require
from tests.faults.places import judged
from tests.faults.processes import Command, new_place, start_real, wait_until

DEATH = "worker killed"
COMMANDS = ("audit", "search", "federate")
"""The commands that run in worker processes."""
SERVER = b"forkserver"
WORKERS = ("--workers", "2")


def kill_worker(stage: Stage, reference: Reference, seed: int) -> Trial:
    """Run a command with two workers, kill one of them, and compare."""
    moment = random.Random(f"worker {seed}").random()
    trial = Trial(Plan(reference.scenario.name, (DEATH,), (moment,), "time", True))
    with judged(trial), new_place(stage.root) as place:
        command = start_real((*reference.scenario.words, *WORKERS, "--out", str(place.out)), place)
        trial.kills = kill_one(command, moment * reference.seconds)
        trial.late = 1 - trial.kills
        ended = command.wait()
        require(ended.code == 0 and not ended.lines, f"it ends with {ended.code}: {ended.said[-900:]}")
        compare(reference, place, trial, "by itself")
    return trial


def kill_one(command: Command, delay: float) -> int:
    """Kill a worker some time after the first one is there; return how many were killed."""
    wait_until(lambda: bool(find_workers(command.process)) or command.is_over(), 300)
    time.sleep(delay)
    for worker in find_workers(command.process):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            return 1
    return 0


def find_workers(process: int) -> list[int]:
    """List the worker processes: those that a fork server has forked."""
    servers = [one for one in list_descendants(process) if SERVER in read_command(one)]
    return [worker for server in servers for worker in list_descendants(server)]


def read_command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""
