"""Where independent jobs run: here, or in processes on this machine.

A job's result depends on the job alone, never on where or beside what it ran: its threads come from the settings.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.queues import Queue
from typing import Protocol, Self, TypeVar

import torch

from gradveil.errors import GradveilError, SettingsError
from gradveil.training.machine import threads

Result = TypeVar("Result", covariant=True)
Report = Callable[[int, int], None]
OnProgress = Callable[[int, int, int], None]
"""Called with the job's position, the steps it has done and the steps it will do."""
Event = tuple[int, int, int, int]
"""The round of jobs, and what `OnProgress` takes."""

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
        self.round = 0

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
        self.round += 1
        with listening(self.events, self.round, notify):
            try:
                futures = [self.pool.submit(run_job, self.round, position, job) for position, job in enumerate(jobs)]
                return [finish(future, partial(notify, position)) for position, future in enumerate(futures)]
            except BrokenProcessPool as error:
                raise GradveilError("a worker process died, perhaps for want of memory: try --workers 1") from error


def finish(future: Future[Result], notify: Report) -> Result:
    """Wait for a job and report it as done: its own last word may still be on its way."""
    result = future.result()
    notify(1, 1)
    return result


@contextmanager
def listening(events: "Queue[Event | None]", this: int, notify: OnProgress) -> Iterator[None]:
    """Pass on what the processes report while the block runs, without stragglers of an earlier round."""

    def listen() -> None:
        while (event := events.get()) is not None:
            if event[0] == this:
                notify(*event[1:])

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


def run_job(this: int, position: int, job: Job[Result]) -> Result:
    assert _events is not None, "a worker process is prepared before its first job"
    events = _events
    return job.run(throttled(lambda done, total: events.put((this, position, done, total))))


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
