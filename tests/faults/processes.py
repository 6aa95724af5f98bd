"""Commands of gradveil as processes: real ones, and quick ones that are forked from a process that has imported all."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from gradveil.stops import list_descendants

LIMIT = 300.0
"""Seconds after which a command counts as hanging; the machine may be busy."""
GONE = 10.0
"""Seconds that the processes which a command started have to end after it."""
Prepare = Callable[[], None]


class FaultError(Exception):
    """What must never happen: a traceback, a hang, a difference, something left behind."""


@dataclass(frozen=True)
class Ended:
    """How a command ended; a negative code is the signal that ended it."""

    code: int
    said: str
    printed: str
    seconds: float

    @property
    def lines(self) -> list[str]:
        return self.said.splitlines()


@dataclass(frozen=True)
class Place:
    """Where a command runs: what it says goes to a folder, its temporary files to another."""

    folder: Path

    @property
    def scratch(self) -> Path:
        return self.folder / "tmp"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def make(self) -> "Place":
        self.scratch.mkdir(parents=True)
        return self


@dataclass
class Command:
    """A command under way, in a session of its own."""

    process: int
    place: Place
    started: float

    def is_watching(self) -> bool:
        """Tell whether gradveil has begun to watch for signals; before that Python ends as it always does."""
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
            caught = int(next(line for line in lines if line.startswith("SigCgt")).split()[1], 16)
            return bool(caught >> (signal.SIGTERM - 1) & 1)
        return False

    def is_over(self) -> bool:
        """Tell whether it has ended; it can still be waited for."""
        return os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process, number)

    def wait(self, limit: float = LIMIT) -> Ended:
        """Wait for the end of the command and of all that it started."""
        if not wait_until(self.is_over, limit):
            end_session(self.process)
            raise FaultError(f"it hangs: not over after {limit:g} s")
        _, status = os.waitpid(self.process, 0)
        seconds = time.monotonic() - self.started
        if not wait_until(lambda: not list_session(self.process), GONE):
            left = [describe_process(one) for one in list_session(self.process)]
            end_session(self.process)
            raise FaultError(f"it left processes behind: {left}")
        texts = [(self.place.folder / name).read_text(errors="replace") for name in ("stderr", "stdout")]
        return Ended(os.waitstatus_to_exitcode(status), texts[0], texts[1], seconds)


def wait_until(ready: Callable[[], bool], seconds: float, pause: float = 0.002) -> bool:
    """Wait for something; tell whether it came in time."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


def list_session(leader: int) -> list[int]:
    """List the living processes of a session, its leader left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z" and int(path.parent.name) != leader:
                found.append(int(path.parent.name))
    return found


def end_session(leader: int) -> None:
    for process in {*list_session(leader), *list_descendants(leader), leader}:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(leader, 0)


def describe_process(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return "gone"


def warm_up(words: Sequence[str], out: Path) -> None:
    """Import all that the commands need and run one here, so that a process forked from this one starts at once.

    It starts no thread: a fork of a process with threads can hang.
    """
    import torch

    from gradveil.cli import app
    from gradveil.cli.commands import COMMANDS

    torch.set_num_threads(1)
    for name in (*(f"gradveil.cli.{entry.module}" for entry in COMMANDS.values()), "gradveil.federated.run"):
        import_module(name)
    app((*words, "--out", str(out)), standalone_mode=False)
    if len(list(Path("/proc/self/task").iterdir())) != 1:
        raise RuntimeError("an import has started a thread: no process can be forked from here")


def start_forked(words: Sequence[str], place: Place, prepare: Prepare | None = None) -> Command:
    """Fork a process that runs a command; `prepare` is called in it first."""
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        run_child(words, place, prepare)
    return Command(process, place, started)


def run_child(words: Sequence[str], place: Place, prepare: Prepare | None) -> NoReturn:
    """Run a command in this forked process, as `python -m gradveil` would, and end it."""
    code = 1
    try:
        os.setsid()
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(place.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.environ["TMPDIR"], tempfile.tempdir = str(place.scratch), None
        sys.argv = ["gradveil", *words]
        if prepare is not None:
            prepare()
        from gradveil.__main__ import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def start_real(words: Sequence[str], place: Place) -> Command:
    """Start `python -m gradveil`."""
    started = time.monotonic()
    with (place.folder / "stdout").open("wb") as out, (place.folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "gradveil", *words],
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(place.scratch)},
        )
    process.returncode = 0  # it is waited for by its number
    return Command(process.pid, place, started)


def run_forked(words: Sequence[str], place: Place, prepare: Prepare | None = None) -> Ended:
    return start_forked(words, place, prepare).wait()


def on_file_operation(folder: Path, act: Callable[[str, str], None]) -> None:
    """Call `act` in this process before each opening for writing, renaming, removing and making in a folder."""
    events = {"open": 0, "os.rename": 1, "os.remove": 0, "os.mkdir": 0, "os.rmdir": 0, "os.truncate": 0}
    inside = os.fsencode(folder)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in events and isinstance(arguments[events[event]], str | bytes | os.PathLike):
            writes = event != "open" or (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))
            target = os.fsencode(arguments[events[event]])  # type: ignore[arg-type]
            if writes and target.startswith(inside):
                act(event, os.fsdecode(target))

    sys.addaudithook(hook)


@contextmanager
def new_place(root: Path) -> Iterator[Place]:
    """Make a place for one trial and remove it afterwards, unless something went wrong."""
    place = Place(Path(tempfile.mkdtemp(dir=root, prefix="trial-"))).make()
    yield place
    shutil.rmtree(place.folder, ignore_errors=True)
