"""Jobs on a Ray cluster, the extra `ray`."""

import logging
import os
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from gradveil.errors import GradveilError, SettingsError, import_extra
from gradveil.machine import threads
from gradveil.workers.base import DEATHS, Job, OnProgress, OnResult, Result, Shared
from gradveil.workers.local import AHEAD, ignore
from gradveil.workers.sharing import recall, remember

Value = TypeVar("Value")

ANSWER_SECONDS = 3.0
SETTINGS_FRAME = b"\x04"
"""The type of the first frame of every HTTP/2 connection, on both sides (RFC 9113, 3.4)."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00" + SETTINGS_FRAME + b"\x00" * 5
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Otherwise Ray prints to stdout, between our own output, that it repeats a job.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",
}


class Ray:
    """The processors of a Ray cluster; this machine has to be one of its nodes.

    Ray repeats a job if its worker or node dies.
    """

    def __init__(self, address: str, threads: int = 1) -> None:
        self.threads = threads
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        self.ray = import_extra("ray", "ray")
        check_answer(address)
        connect(self.ray, address)
        task = self.ray.remote(max_calls=0, max_retries=DEATHS - 1, num_cpus=1, retry_exceptions=False)
        self.task = task(run_remotely)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()

    def share(self, value: Value) -> Shared[Value]:
        """Put a value into the cluster's store; each node fetches it once."""
        return InCluster(self.ray.put(value))

    def run(
        self, jobs: Sequence[Job[Result]], on_progress: OnProgress | None = None, on_result: OnResult | None = None
    ) -> list[Result]:
        """Run every job; results come in the order of the jobs. Progress is reported for whole jobs only."""
        report_progress, report_result = on_progress or ignore, on_result or ignore
        results: dict[int, Result] = {}
        running: dict[Any, int] = {}
        todo = deque(enumerate(jobs))
        while todo or running:
            # Asked again each time, because nodes come and go.
            processors = int(self.ray.cluster_resources().get("CPU", 1))
            while todo and len(running) < AHEAD * max(1, processors):
                position, job = todo.popleft()
                running[self.task.remote(job, self.threads)] = position
            done, _ = self.ray.wait(list(running), num_returns=1)
            for reference in done:
                position = running.pop(reference)
                results[position] = self.fetch(reference, position, len(jobs))
                report_progress(position, 1, 1)
                report_result(position, results[position])
        return [results[position] for position in range(len(jobs))]

    def fetch(self, reference: Any, position: int, total: int) -> Any:
        """Return a result, or raise the error of its job without Ray's wrapping."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, self.ray.exceptions.RayError):
                raise GradveilError(
                    f"a node of the cluster cannot run our jobs: {first_line(error.cause)}; install this version of "
                    "gradveil on every node"
                ) from error
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            raise GradveilError(
                f"{DEATHS} workers of the cluster died over job {position + 1} of {total}: {first_line(error)}"
            ) from error


def run_remotely(job: Job[Result], count: int) -> Result:
    """Run a job on a node."""
    with threads(count):
        return job.run(ignore)


@dataclass(frozen=True)
class InCluster(Generic[Value]):
    """A value in the cluster's store."""

    reference: Any

    def get(self) -> Value:
        key = self.reference.hex()
        value: Value | None = recall(key)
        if value is None:
            value = import_extra("ray", "ray").get(self.reference)
            remember(key, value)
        return value


def check_answer(address: str) -> None:
    """Refuse an address where no Ray cluster answers; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and "/" not in host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError(
            f"'{address}' is no address of a Ray cluster: give HOST:PORT, as 'ray start --head' prints it"
        )
    try:
        answer = greet(host, int(port))
    except OSError as error:
        raise SettingsError(
            f"no Ray cluster answers at {address} ({error.strerror or error}): start one with 'ray start --head', or "
            "use --workers"
        ) from error
    if answer[3:4] != SETTINGS_FRAME:
        raise SettingsError(f"what answers at {address} is no Ray cluster: give the address that 'ray start' prints")


def greet(host: str, port: int) -> bytes:
    """Open a connection as gRPC does and return the first bytes of the answer."""
    with socket.create_connection((host, port), ANSWER_SECONDS) as connection:
        connection.sendall(PREFACE)
        return connection.recv(9)


def connect(ray: Any, address: str) -> None:
    """Join the cluster as its driver."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, AssertionError) as error:
        raise SettingsError(
            f"cannot join the Ray cluster at {address}: {first_line(error)}; make this machine one of its nodes with "
            f"'ray start --address={address}'"
        ) from error


def first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
