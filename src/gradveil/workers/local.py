"""Jobs in this process, or in processes on this machine."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.context import ForkServerContext
from multiprocessing.queues import Queue
from typing import Any, Generic, Self, TypeVar

import torch

from gradveil.errors import SettingsError
from gradveil.machine import threads
from gradveil.workers.base import DEATHS, Job, JobDeathError, OnProgress, OnResult, Result, Shared, throttled
from gradveil.workers.sharing import Here, remember, shared_in_file

Value = TypeVar("Value")
Event = tuple[int, int, int, int]
"""The number of the round of jobs, and the arguments of `OnProgress`."""

AHEAD = 2
"""Jobs submitted for each process, so that a process never waits for its next job."""


class Workers:
    """Up to `count` processes, kept for several rounds of jobs; a count of one runs the jobs in this process.

    A process that dies is replaced and its job is repeated.
    """

    def __init__(self, count: int, threads: int = 1) -> None:
        if count < 1:
            raise SettingsError(f"{count} workers: give 1 or more")
        self.count, self.threads = count, threads
        self.context = make_context()
        self.pool: Pool | None = None
        self.files = contextlib.ExitStack()
        self.round = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes; after an error without waiting for what they are at."""
        if self.pool is not None:
            self.pool.close(at_once=kind is not None)
        self.files.close()

    def share(self, value: Value) -> Shared[Value]:
        """Put a value where the processes can read it."""
        if self.count == 1:
            return Here(value)
        shared = self.files.enter_context(shared_in_file(value))
        remember(shared.key, value)
        return shared

    def run(
        self, jobs: Sequence[Job[Result]], on_progress: OnProgress | None = None, on_result: OnResult | None = None
    ) -> list[Result]:
        """Run every job; results come in the order of the jobs."""
        progress, result = on_progress or ignore, on_result or ignore
        if self.count == 1 or len(jobs) <= 1:
            return self.run_here(jobs, progress, result)
        self.round += 1
        work = JobsUnderWay(jobs, progress, result)
        while len(work.results) < len(jobs):
            if self.pool is None:
                self.pool = Pool(self.context, self.count, self.threads)
            try:
                with self.pool.listening(self.round, progress):
                    work.run_open_jobs(partial(self.pool.submit, self.round), self.count)
            except BrokenProcessPool as error:
                self.pool.close(at_once=True)
                self.pool = None
                work.note_death(error)
        return [work.results[position] for position in range(len(jobs))]

    def run_here(self, jobs: Sequence[Job[Result]], on_progress: OnProgress, on_result: OnResult) -> list[Result]:
        results = []
        with threads(self.threads):
            for position, job in enumerate(jobs):
                results.append(job.run(throttled(partial(on_progress, position))))
                on_result(position, results[-1])
        return results


def make_context() -> ForkServerContext:
    """Fork from a process that has only imported torch: a fork of a process that ran torch's threads can hang."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def ignore(*_: object) -> None:
    """Report to nobody."""


@dataclass(eq=False)
class JobsUnderWay(Generic[Result]):
    """Jobs in progress; `deaths` counts for each job how many processes died while it was submitted."""

    jobs: Sequence[Job[Result]]
    on_progress: OnProgress
    on_result: OnResult
    results: dict[int, Result] = field(default_factory=dict)
    running: "dict[Future[Result], int]" = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.deaths = [0] * len(self.jobs)

    def run_open_jobs(self, submit: Any, count: int) -> None:
        """Run the jobs without a result; a job with many deaths runs first and alone, to see if it is the cause."""
        todo = deque(sorted(set(range(len(self.jobs))) - set(self.results), key=lambda at: (-self.deaths[at], at)))
        try:
            while todo or self.running:
                alone = any(self.deaths[at] == DEATHS - 1 for at in (*self.running.values(), *list(todo)[:1]))
                while todo and len(self.running) < (1 if alone else AHEAD * count):
                    position = todo.popleft()
                    self.running[submit(position, self.jobs[position])] = position
                wait(self.running, return_when=FIRST_COMPLETED)
                self.harvest()
        except BaseException:
            for future in self.running:
                future.cancel()
            raise

    def harvest(self) -> None:
        """Take every finished result, then raise the first error."""
        done = sorted((future for future in self.running if future.done()), key=self.running.__getitem__)
        failed = [future for future in done if future.exception() is not None]
        for future in done:
            if future not in failed:
                position = self.running.pop(future)
                self.results[position] = future.result()
                # The job's own last report may still be in the queue.
                self.on_progress(position, 1, 1)
                self.on_result(position, self.results[position])
        for future in failed:
            future.result()

    def note_death(self, error: BrokenProcessPool) -> None:
        """Count a death for every submitted job; a job with too many ends the round."""
        for position in self.running.values():
            self.deaths[position] += 1
            if self.deaths[position] == DEATHS:
                raise JobDeathError(
                    position,
                    f"{DEATHS} worker processes died over job {position + 1} of {len(self.jobs)}, perhaps for lack of "
                    "memory: use fewer workers; --workers 1 shows the cause",
                ) from error
        self.running.clear()


class Pool:
    """The processes and the queue of their reports; both are replaced together when a process dies."""

    def __init__(self, context: Any, count: int, threads: int) -> None:
        self.events: Queue[Event | None] = context.Queue()
        # Only this process holds the second end: when it is closed, the processes end at once.
        self.lifeline, self.hold = context.Pipe(duplex=False)
        self.executor = ProcessPoolExecutor(count, context, prepare_worker, (threads, self.events, self.lifeline))

    def submit(self, number: int, position: int, job: Job[Result]) -> "Future[Result]":
        return self.executor.submit(run_job, number, position, job)

    def close(self, at_once: bool) -> None:
        """End the processes, when their jobs are done or at once."""
        if at_once:
            self.hold.close()
        self.executor.shutdown(cancel_futures=True)
        self.hold.close()
        self.lifeline.close()
        self.events.cancel_join_thread()
        self.events.close()

    @contextlib.contextmanager
    def listening(self, number: int, notify: OnProgress) -> Iterator[None]:
        """Pass on the reports of the processes while the block runs; late reports of earlier rounds are dropped."""

        def listen() -> None:
            while (event := self.events.get()) is not None:
                if event[0] == number:
                    notify(*event[1:])

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        try:
            yield
        finally:
            self.events.put(None)
            # A process that died while it reported can leave the queue locked.
            listener.join(timeout=2)


_events: "Queue[Event | None] | None" = None


def prepare_worker(threads: int, queue: "Queue[Event | None]", lifeline: Connection) -> None:
    """Set up a new process; a queue can only be passed at its start."""
    global _events
    torch.set_num_threads(threads)
    _events = queue
    # An interrupt reaches the main process too, and that one reports it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, args=(lifeline,), daemon=True).start()


def end_with_parent(lifeline: Connection | None = None) -> None:
    """End this process when its parent is gone, even if the parent was killed, or has closed the lifeline."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait_for_end([parent.sentinel] if lifeline is None else [parent.sentinel, lifeline])
    os._exit(1)


def run_job(number: int, position: int, job: Job[Result]) -> Result:
    assert _events is not None, "a worker process is prepared before its first job"
    events = _events
    return job.run(throttled(lambda done, total: events.put((number, position, done, total))))
