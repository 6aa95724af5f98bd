"""Try malformed inputs and count what becomes of them."""

import logging
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from gradveil.errors import GradveilError
from gradveil.journal import Journal
from gradveil.results import provenance
from tests.faults.readers import Reader, readers

PATIENCE = 20.0
"""Seconds after which an input counts as a hang; the machine may be busy."""
SHOWN = 5
EXAMPLES = 200
LEAST = 600
"""Inputs that every class gets before the cheap classes get more."""
COSTLY = 0.02
"""Seconds for each input, from which on a class counts as costly."""
SLOW = 5.0
"""Seconds after which an input is tried again: the machine may have been busy."""
MEMORY = 6.0
JOURNAL = "journal.jsonl"


class HangError(BaseException):
    """An input was not done in time; no reader may catch it."""


@dataclass
class Outcome:
    """What became of the inputs of one class; `faults` has the first few that were neither read nor refused."""

    read: int = 0
    refused: int = 0
    failed: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)

    def to_record(self) -> dict[str, Any]:
        """Return the counts as they stand in JSON."""
        return {"tried": self.tried, **vars(self), "slowest": round(self.slowest, 3)}

    @property
    def tried(self) -> int:
        return self.read + self.refused + self.failed


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `HangError` in the block after so many seconds, and again every second in case it was swallowed."""

    def ring(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise HangError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def try_one(reader: Reader, drawing: st.DataObject, folder: Path, outcome: Outcome) -> None:
    """Try one input: it is read, refused with an error of gradveil's, or at fault."""
    started = time.perf_counter()
    try:
        with time_limit(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.attempt(drawing.draw, folder)
        outcome.read += 1
    except GradveilError:
        outcome.refused += 1
    except (Exception, HangError) as error:
        if type(error).__module__.startswith("hypothesis"):
            raise
        outcome.failed += 1
        if len(outcome.faults) < SHOWN:
            outcome.faults.append(describe(error))
    outcome.slowest = max(outcome.slowest, time.perf_counter() - started)


def describe(error: BaseException) -> str:
    """Say what was raised, and where in gradveil."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/gradveil/" in frame.filename]
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "the harness"
    return f"{type(error).__name__} at {where}: {' '.join(str(error).split())[:120]}"


def fuzz(reader: Reader, examples: int, start: int) -> Outcome:
    """Try so many inputs of one class, drawn from the seed `start`, in a folder that is removed afterwards."""
    outcome = Outcome()
    folder = Path(tempfile.mkdtemp(prefix="gradveil-faults-"))

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(drawing: st.DataObject) -> None:
        try_one(reader, drawing, folder, outcome)

    try:
        reader.prepare(folder)
        run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def limit_memory(gigabytes: float) -> None:
    """Let this process fail on an allocation that no input may cause."""
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def run(folder: Path, minutes: float) -> None:
    """Try one class after the other, with its next seed, until the time is over; the journal says where it was."""
    torch.set_num_threads(1)
    limit_memory(MEMORY)
    logging.getLogger("gradveil").setLevel(logging.ERROR)
    journal = Journal(folder / JOURNAL)
    seeds, tried, seconds = Counter[str](), Counter[str](), Counter[str]()
    lines = journal.read()
    for line in lines:
        count(line, seeds, tried, seconds)
    classes = {reader.name: reader for reader in readers()}
    fuzz(classes["policy"], EXAMPLES, 0)  # Hypothesis makes its tables with the first inputs
    for line in last_lines(lines):
        if line["failed"] or line["slowest"] > SLOW:
            journal.append(run_one(classes[line["input"]], line["seed"]))
    stop = time.monotonic() + 60 * minutes
    while time.monotonic() < stop:
        costly = {one for one in classes if seconds[one] > COSTLY * tried[one]}
        name = min(classes, key=lambda one: (min(LEAST, tried[one]), one in costly, tried[one]))
        line = run_one(classes[name], seeds[name])
        journal.append(line)
        count(line, seeds, tried, seconds)


def run_one(reader: Reader, start: int) -> dict[str, Any]:
    """Try the inputs of one class and seed, and return the line of the journal."""
    started = time.monotonic()
    outcome = fuzz(reader, EXAMPLES, start)
    print(f"{reader.name}: {outcome.tried} tried, {outcome.failed} failed {outcome.faults[:1]}", flush=True)
    return {
        "input": reader.name,
        "seed": start,
        **outcome.to_record(),
        "seconds": round(time.monotonic() - started, 3),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "made_by": provenance(),
    }


def last_lines(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep the last line of each class and seed: what failed is tried again once it is mended, with the same inputs."""
    return list({(line["input"], line["seed"]): line for line in lines}.values())


def count(line: dict[str, Any], seeds: Counter[str], tried: Counter[str], seconds: Counter[str]) -> None:
    """Add one line of the journal to what every class has had."""
    seeds[line["input"]] = max(seeds[line["input"]], line["seed"] + 1)
    tried[line["input"]] += line["tried"]
    seconds[line["input"]] += line.get("seconds", 0)
