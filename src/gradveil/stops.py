"""Ctrl-C and SIGTERM: a command ends within seconds, says in one line what is kept, and leaves no process."""

import atexit
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

SECONDS = 1.5
"""How long a command has to end by itself after a signal; then it is ended."""
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
CODE = 128
"""The exit code is this plus the number of the signal, as shells have it."""
TRACKER = b"multiprocessing.resource_tracker"
"""The process in which Python removes what killed processes left; it ends by itself."""
QUIET = "ignore:resource_tracker:UserWarning"
"""That process removes what is left without a word; it gets this process's options for warnings when it starts."""
PR_SET_CHILD_SUBREAPER = 36
"""The number of this request to Linux, from its prctl.h."""
ROUNDS, PAUSE = 20, 0.02
Note = Callable[[], str]
"""Says, when it is asked, what is kept of the work and how to go on."""


class Stopped(BaseException):
    """Raised in the main thread by the first signal; no `except Exception` can swallow it."""


def say_nothing_is_kept() -> str:
    return "nothing is kept: run it again"


@dataclass
class Watch:
    """What this process knows of signals; `received` is the number of the first one."""

    is_on: bool = False
    received: int | None = None
    is_raised: bool = False
    is_said: bool = False
    note: Note = say_nothing_is_kept


_watch = Watch()


def is_stopped() -> bool:
    """Tell whether a signal has come."""
    return _watch.received is not None


def say_on_stop(note: Note) -> None:
    """Let `note` say what is kept if a signal stops the command from here on."""
    _watch.note = note


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Watch for signals while a command runs; a second watch within, or one in another thread, does nothing."""
    if _watch.is_on or threading.current_thread() is not threading.main_thread():
        yield
        return
    _watch.is_on, _watch.note = True, say_nothing_is_kept
    if QUIET not in sys.warnoptions:
        sys.warnoptions.append(QUIET)
    here, there = socket.socketpair()
    there.setblocking(False)
    threading.Thread(target=guard, args=(here,), daemon=True).start()
    try:
        with handled(there):
            yield
    except BaseException:
        if _watch.received is None:
            raise
        say_what_is_kept(_watch.received)
        end_descendants()
        leave(CODE + _watch.received)
    finally:
        if _watch.received is None:
            there.close()
            _watch.is_on = False


@contextlib.contextmanager
def handled(there: socket.socket) -> Iterator[None]:
    """Handle signals by `stop` while the block runs; after one came, they stay handled."""
    before = {number: signal.getsignal(number) for number in WORDS}
    try:
        for number in WORDS:
            signal.signal(number, stop)
        # Python runs a handler between two of its own instructions; what is written here comes through at once.
        signal.set_wakeup_fd(there.fileno(), warn_on_full_buffer=False)
        yield
    finally:
        if _watch.received is None:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)


def watch_the_edges() -> None:
    """Let a signal that comes before the watch or after it say what is kept and end the process at once."""
    for number in WORDS:
        signal.signal(number, end_at_once)
    # What is registered first runs last.
    atexit.register(ignore_signals)


def ignore_signals() -> None:
    """Let signals change nothing any more: Python takes its modules down, and would let a signal end it silently."""
    for number in WORDS:
        signal.signal(number, signal.SIG_IGN)


def end_at_once(number: int, _: FrameType | None) -> None:
    say_what_is_kept(number)
    end_descendants()
    os._exit(CODE + number)


def stop(number: int, _: FrameType | None) -> None:
    """Raise `Stopped` at the first signal; later ones change nothing, because the end is under way."""
    receive(number)
    if not _watch.is_raised:
        _watch.is_raised = True
        raise Stopped


def receive(number: int) -> None:
    """Take down that a signal came; from now on no process that this one started gets out of sight."""
    if _watch.received is None:
        _watch.received = number
        # This process becomes the parent of those whose own parent ends.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def guard(here: socket.socket) -> None:
    """End this process if it is still there some time after a signal: it may be within a long computation."""
    with here:
        while numbers := here.recv(64):
            number = next((number for number in numbers if number in WORDS), None)
            if number is not None:
                # The handler may be another by now: Ray installs one of its own.
                receive(number)
                time.sleep(SECONDS)
                end_at_once(number, None)


def leave(code: int) -> NoReturn:
    """Run what is registered for the end and leave; to take all modules down as well can last longer than the rest."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def say_what_is_kept(number: int) -> None:
    """Print the one line, once."""
    if _watch.is_said:
        return
    _watch.is_said = True
    note = _watch.note()
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout.isatty():
            # A progress bar hides the cursor.
            os.write(1, b"\x1b[?25h")
        os.write(2, f"gradveil: {WORDS[signal.Signals(number)]}; {note}\n".encode())


def end_descendants() -> None:
    """Kill every process that this one started, and those that they started, until there are none."""
    for _ in range(ROUNDS):
        found = [process for process in list_descendants(os.getpid()) if is_to_end(process)]
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE)


def is_to_end(process: int) -> bool:
    """Tell whether a process is alive and not the tracker; what has ended has no command line."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return bool(command) and TRACKER not in command


def list_descendants(process: int) -> list[int]:
    """List the children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program, in brackets, may hold anything.
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found = list(children.get(process, []))
    for one in found:
        found += children.get(one, [])
    return found
