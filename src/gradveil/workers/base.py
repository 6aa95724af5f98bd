"""The protocols: a job, a value that jobs share, and a crew that runs jobs."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from gradveil.errors import GradveilError

Result = TypeVar("Result")
Outcome = TypeVar("Outcome", covariant=True)
Value = TypeVar("Value", covariant=True)
Report = Callable[[int, int], None]
"""Called by a job with the steps it has done and the steps it will do."""
OnProgress = Callable[[int, int, int], None]
"""Called with the job's position, the steps it has done and the steps it will do."""
OnResult = Callable[[int, Any], None]
"""Called with the job's position and its result, as soon as the job is done and in the caller's thread."""

REPORT_SECONDS = 0.2
DEATHS = 3
"""After this many dead workers, the job that they ran is taken to be the cause."""


class JobDeathError(GradveilError):
    """The job at `position` killed every process that ran it."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class Job(Protocol[Outcome]):
    """A picklable piece of work; it may report its progress."""

    def run(self, report: Report) -> Outcome: ...


class Shared(Protocol[Value]):
    """A large value that many jobs need; each worker receives it once."""

    def get(self) -> Value: ...


class Crew(Protocol):
    """Runs jobs; the results are the same to the bit wherever the jobs run."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def share(self, value: Value) -> Shared[Value]:  # type: ignore[misc]
        """Make a value ready for the jobs of this crew."""

    def run(
        self, jobs: Sequence[Job[Result]], on_progress: OnProgress | None = None, on_result: OnResult | None = None
    ) -> list[Result]:
        """Run every job; results come in the order of the jobs."""


def throttled(report: Report) -> Report:
    """Pass on a few reports per second, and the last one."""
    latest = -REPORT_SECONDS

    def report_seldom(done: int, total: int) -> None:
        nonlocal latest
        now = time.monotonic()
        if done >= total or now - latest >= REPORT_SECONDS:
            latest = now
            report(done, total)

    return report_seldom
