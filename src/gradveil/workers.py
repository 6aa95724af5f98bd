"""Where independent jobs run: here, or in processes on this machine.

A job's result depends on the job alone, never on where or beside what it ran: its threads come from the settings.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.queues import Queue
from typing import Protocol, Self, TypeVar

import torch

from gradveil.errors import GradveilError, SettingsError
from gradveil.training.loop import threads

Result = TypeVar("Result", covariant=True)
Report = Callable[[int, int], None]
Event = tuple[int, int, int]
OnProgress = Callable[[int, int, int], None]
"""Called with the job's position, the steps it has done and the steps it will do."""

REPORT_SECONDS = 0.2


class Job(Protocol[Result]):
    """Something picklable that can run on its own; it may report how far it is."""

    def run(self, report: Report) -> Result: ...


class Workers:
    """Up to `count` processes, kept for several rounds of jobs; a count of one works in this process."""

    def __init__(self, count: int, threads: int = 1) -> None:
        if count < 1:
            raise SettingsError(f"{count} workers: give 1 or more")
        self.count, self.threads = count, threads
        # spawn, because a fork of a process that has run torch's threads can hang.
        self.context = multiprocessing.get_context("spawn")
        self.events: Queue[Event | None] = self.context.Queue()
        self.pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
        self.events.close()

    def run(self, jobs: Sequence[Job[Result]], on_progress: OnProgress | None = None) -> list[Result]:
        """Run every job; results come in the order of the jobs."""
        notify = on_progress or (lambda *_: None)
        if self.count == 1 or len(jobs) <= 1:
            with threads(self.threads):
                return [job.run(throttled(partial(notify, position))) for position, job in enumerate(jobs)]
        if self.pool is None:
            self.pool = ProcessPoolExecutor(self.count, self.context, prepare_worker, (self.threads, self.events))
        with listening(self.events, notify):
            try:
                futures = [self.pool.submit(run_job, position, job) for position, job in enumerate(jobs)]
                return [future.result() for future in futures]
            except BrokenProcessPool as error:
                raise GradveilError("a worker process died, perhaps for want of memory: try --workers 1") from error


@contextmanager
def listening(events: "Queue[Event | None]", notify: OnProgress) -> Iterator[None]:
    """Pass on what the processes report while the block runs."""

    def listen() -> None:
        while (event := events.get()) is not None:
            notify(*event)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        events.put(None)
        listener.join()


_events: "Queue[Event | None] | None" = None


def prepare_worker(threads: int, queue: "Queue[Event | None]") -> None:
    """Set up a fresh process: a queue can only be handed over at its start."""
    global _events
    torch.set_num_threads(threads)
    _events = queue


def run_job(position: int, job: Job[Result]) -> Result:
    assert _events is not None, "a worker process is prepared before its first job"
    events = _events
    return job.run(throttled(lambda done, total: events.put((position, done, total))))


def throttled(report: Report) -> Report:
    """Pass on a few reports a second and the last one."""
    latest = -REPORT_SECONDS

    def maybe(done: int, total: int) -> None:
        nonlocal latest
        now = time.monotonic()
        if done >= total or now - latest >= REPORT_SECONDS:
            latest = now
            report(done, total)

    return maybe
