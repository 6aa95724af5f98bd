"""How far a command is: bars on a terminal, a line every half minute elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from gradveil.cli.options import PlainConsole
from gradveil.errors import printable

OnProgress = Callable[[str, int, int], None]
"""Called with what is done, how much of it is done, and how much there is."""
EVERY = 30.0
"""Seconds from one line to the next at most."""
CHECK = 1.0
Clock = Callable[[], float]


class Lines:
    """The latest that was reported, written as one line when the last line is old."""

    def __init__(self, write: Callable[[str], None], clock: Clock = time.monotonic, every: float = EVERY) -> None:
        self.write, self.clock, self.every = write, clock, every
        self.started = self.written = clock()
        self.what, self.done, self.total = "starting", 0, 0
        # Where the present step was first seen, for its rate.
        self.first, self.first_at = 0, self.started

    def report(self, what: str, done: int, total: int) -> None:
        """Take down how far it is."""
        if total != self.total or done < self.done:
            self.first, self.first_at = done, self.clock()
        self.what, self.done, self.total = what, done, total
        self.tick()

    def tick(self) -> None:
        """Write a line if it is time."""
        now = self.clock()
        if now - self.written >= self.every:
            self.written = now
            self.write(self.text(now))

    def text(self, now: float) -> str:
        """Say how far it is, how long it has taken, and how long the rest of this step may take."""
        percent = f", {self.done / self.total:.0%}" if self.total else ""
        left = ""
        if self.first < self.done < self.total:
            seconds = (now - self.first_at) * (self.total - self.done) / (self.done - self.first)
            left = f", about {say_seconds(seconds)} left of this step"
        return f"gradveil: {printable(self.what)}{percent}, {say_seconds(now - self.started)} so far{left}"


def say_seconds(seconds: float) -> str:
    """Write a duration in the unit that fits.

    >>> say_seconds(0.4), say_seconds(40), say_seconds(400), say_seconds(40_000)
    ('under 1 s', '40 s', '7 min', '11 h')
    """
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.0f} h"


@contextmanager
def progress_lines(console: PlainConsole) -> Iterator[OnProgress]:
    """Write a line to stderr every half minute, however rarely anything is reported."""
    lines = Lines(lambda text: None if console.mute else print(text, file=sys.stderr, flush=True))
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(CHECK):
            lines.tick()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield lines.report
    finally:
        ended.set()


@contextmanager
def progress_bar(console: PlainConsole, in_bytes: bool = False) -> Iterator[OnProgress]:
    """Show a bar for each task that is reported, and remove the bars when the block ends; elsewhere, lines."""
    if not console.is_terminal:
        with progress_lines(console) as report:
            yield report
        return
    amounts: tuple[ProgressColumn, ...] = (
        (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    )
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *amounts, TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, transient=True) as bars:

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(printable(what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield show


@contextmanager
def single_bar(console: PlainConsole, *amounts: ProgressColumn) -> Iterator[OnProgress]:
    """Show one bar whose words change; it begins where the run is, so that a resumed one shows its true rate."""
    if not console.is_terminal:
        with progress_lines(console) as report:
            yield report
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *amounts, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: list[TaskID] = []

        def show(what: str, done: int, total: int) -> None:
            if not tasks:
                tasks.append(bars.add_task("", total=total, completed=done))
            bars.update(tasks[0], completed=done, description=printable(what))

        yield show
