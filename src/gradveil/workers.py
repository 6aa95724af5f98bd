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
from multiprocessing.queues import Queue
from typing import Protocol, TypeVar

import torch

from gradveil.errors import GradveilError, SettingsError

Result = TypeVar("Result", covariant=True)
Report = Callable[[int, int], None]
OnProgress = Callable[[int, int, int], None]
"""Called with the job's position, the steps it has done and the steps it will do."""

REPORT_SECONDS = 0.2


class Job(Protocol[Result]):
    """Something picklable that can run on its own; it may report how far it is."""

    def run(self, report: Report) -> Result: ...


def run_jobs(
    jobs: Sequence[Job[Result]], workers: int, threads: int = 1, on_progress: OnProgress | None = None
) -> list[Result]:
    """Run every job with `threads` threads each; results come in the order of the jobs."""
    if workers < 1:
        raise SettingsError(f"{workers} workers: give 1 or more")
    notify = on_progress or (lambda *_: None)
    if workers == 1 or len(jobs) <= 1:
        with threads_of_torch(threads):
            return [job.run(throttled(lambda d, t, p=position: notify(p, d, t))) for position, job in enumerate(jobs)]  # type: ignore[misc]
    return run_in_processes(jobs, min(workers, len(jobs)), threads, notify)


def run_in_processes(jobs: Sequence[Job[Result]], workers: int, threads: int, notify: OnProgress) -> list[Result]:
    # spawn, because a fork of a process that has run torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    queue: Queue[tuple[int, int, int] | None] = context.Queue()
    listener = threading.Thread(target=listen, args=(queue, notify), daemon=True)
    listener.start()
    pool = ProcessPoolExecutor(workers, context, prepare_worker, (threads, queue))
    try:
        futures: list[Future[Result]] = [pool.submit(run_job, position, job) for position, job in enumerate(jobs)]
        return [future.result() for future in futures]
    except BrokenProcessPool as error:
        raise GradveilError("a worker process died, perhaps for want of memory: try --workers 1") from error
    finally:
        pool.shutdown(cancel_futures=True)
        queue.put(None)
        listener.join()
        queue.close()


def listen(queue: "Queue[tuple[int, int, int] | None]", notify: OnProgress) -> None:
    while (event := queue.get()) is not None:
        notify(*event)


_events: "Queue[tuple[int, int, int] | None] | None" = None


def prepare_worker(threads: int, queue: "Queue[tuple[int, int, int] | None]") -> None:
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


@contextmanager
def threads_of_torch(count: int) -> Iterator[None]:
    """Let torch use `count` threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
