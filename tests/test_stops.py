"""Ctrl-C and SIGTERM on real processes: the end comes in time, one line says what is kept, and nothing is left."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from gradveil.stops import list_descendants

LIMIT = 3.0
START = 120.0
MARK = "GRADVEIL_TEST_MARK"
RAY = re.compile(r"SIGTERM received|\(unknown\)")
"""Ray prints lines of its own when a signal comes."""
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
TOY = """
import subprocess, sys, time
from pathlib import Path
from gradveil.stops import say_on_stop, watched

class Stubborn:
    def __exit__(self, *_):
        time.sleep(60)
    def __enter__(self):
        pass

with watched():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    say_on_stop(lambda: "half of it is kept")
    Path(sys.argv[1]).touch()
    if sys.argv[2] == "swallow":
        while True:
            try:
                time.sleep(60)
            except Exception:
                pass
    if sys.argv[2] == "stubborn":
        with Stubborn():
            time.sleep(60)
    if sys.argv[2] == "dropped":
        while True:
            try:
                time.sleep(60)
            except BaseException:
                pass
"""
SMALL = ["--data", "fashion-mnist-sample"]
AUDIT = ["audit", "--images", "8", "--phase", "final", "--epochs", "50", "--workers", "2"]
SEARCH = ["search", "--candidates", "300", "--epochs", "1", "--images", "8", "--strategy", "random", "--keep", "2"]
TRAIN = ["train", "--epochs", "200", "--threads", "1"]
FEDERATE = ["federate", "--clients", "4", "--rounds", "500"]
Ready = Callable[[Path], bool]


def has_lines(count: int) -> Ready:
    def ready(out: Path) -> bool:
        path = out / "journal.jsonl"
        return path.exists() and path.read_bytes().count(b"\n") >= count

    return ready


def has_state(out: Path) -> bool:
    return (out / "resume.safetensors").exists()


def has_trained(out: Path) -> bool:
    return any((out / "work" / "models").rglob("resume.safetensors"))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Make a folder with a short name: the paths of Ray's sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="gv", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def started(words: list[str], scratch: Path, ready: Callable[[], bool]) -> Iterator["subprocess.Popen[str]"]:
    """Start a command in a session of its own, with a folder for its temporary files; wait until it is at work."""
    mark = uuid4().hex
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, MARK: mark, "TMPDIR": str(scratch)},
    )
    try:
        end = time.monotonic() + START
        while not ready():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end, "it does not start"
            time.sleep(0.05)
        yield process
        wait_until_gone(mark)
    finally:
        for left in find_marked(mark):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def find_marked(mark: str) -> list[int]:
    """List the processes whose environment holds the mark; zombies have none."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until_gone(mark: str) -> None:
    """Python's own helpers end a moment after the process that they help."""
    end = time.monotonic() + LIMIT
    while left := find_marked(mark):
        assert time.monotonic() < end, [Path(f"/proc/{one}/cmdline").read_bytes() for one in left]
        time.sleep(0.05)


def stop(process: "subprocess.Popen[str]", number: signal.Signals, group: bool) -> str:
    """Send a signal, wait for the end, and return what was said."""
    sent = time.monotonic()
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    code = process.wait(LIMIT)
    assert time.monotonic() - sent < LIMIT
    assert code == 128 + number
    said = process.communicate()[1].splitlines()
    # On a busy machine a command may have run for half a minute, and said so.
    lines = [line for line in said if not RAY.search(line) and " so far" not in line]
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"gradveil: {WORDS[number]}; ")
    return lines[0]


@pytest.mark.parametrize("behaviour", ["swallow", "stubborn", "dropped"])
@pytest.mark.parametrize("number", list(WORDS))
def test_a_process_ends_in_time_whatever_it_does(number: signal.Signals, behaviour: str, scratch: Path) -> None:
    begun = scratch / "begun"
    with started([sys.executable, "-c", TOY, str(begun), behaviour], scratch, begun.exists) as process:
        assert "half of it is kept" in stop(process, number, group=False)


EARLY = """
import os, signal, sys
from gradveil.stops import watched

before = signal.signal
def install(number, handler):
    found = before(number, handler)
    if number == int(sys.argv[1]):
        os.kill(os.getpid(), number)
    return found
signal.signal = install
with watched():
    print("at work")
"""
LATE = """
import atexit, os, sys
from gradveil import __main__, cli

def run():
    atexit.register(lambda: os.kill(os.getpid(), int(sys.argv[1])))

cli.main = run
__main__.main()
"""


@pytest.mark.parametrize("script", [EARLY, LATE], ids=["while the watch begins", "while Python ends"])
@pytest.mark.parametrize("number", list(WORDS))
def test_a_signal_at_the_edge_is_one_line_too(number: signal.Signals, script: str) -> None:
    words = [sys.executable, "-c", script, str(int(number))]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=START, check=False)
    assert (ended.returncode, ended.stdout) == (128 + number, "")
    assert ended.stderr == f"gradveil: {WORDS[number]}; nothing is kept: run it again\n"


LAST = """
import os, sys
from gradveil import __main__, cli

class Last:
    def __del__(self, kill=os.kill, process=os.getpid(), number=int(sys.argv[1])):
        kill(process, number)

cli.main = print
last = Last()
__main__.main()
"""


@pytest.mark.parametrize("number", list(WORDS))
def test_a_signal_while_modules_are_taken_down_changes_nothing(number: signal.Signals) -> None:
    words = [sys.executable, "-c", LAST, str(int(number))]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=START, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "\n", "")


def test_before_the_work_nothing_is_kept(scratch: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from gradveil.stops import watched\n"
        "with watched(): Path(sys.argv[1]).touch(); time.sleep(60)"
    )
    begun = scratch / "begun"
    with started([sys.executable, "-c", script, str(begun)], scratch, begun.exists) as process:
        assert "nothing is kept" in stop(process, signal.SIGINT, group=True)


def test_descendants_are_found() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; print(1); time.sleep(60)'])"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            found = list_descendants(os.getpid())
            assert process.pid in found
            assert len(list_descendants(process.pid)) == 1
            assert set(list_descendants(process.pid)) < set(found)
        finally:
            for one in [*list_descendants(process.pid), process.pid]:
                os.kill(one, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "ready", "number", "group"),
    [
        (AUDIT, has_trained, signal.SIGINT, True),
        (AUDIT, has_trained, signal.SIGTERM, False),
        ([*SEARCH, "--workers", "2"], has_lines(3), signal.SIGTERM, True),
        ([*SEARCH, "--workers", "1"], has_lines(3), signal.SIGINT, False),
        (TRAIN, has_state, signal.SIGTERM, False),
        ([*FEDERATE, "--workers", "2"], has_lines(3), signal.SIGINT, True),
        ([*FEDERATE, "--topology", "ring"], has_lines(3), signal.SIGTERM, True),
        ([*FEDERATE, "--engine", "ray"], has_lines(1), signal.SIGTERM, False),
        ([*FEDERATE, "--engine", "deployment", "--clients", "2"], has_lines(1), signal.SIGINT, True),
    ],
    ids=[
        *("audit-int", "audit-term", "search-term", "search-int", "train-term", "federate-int", "ring-term"),
        *("ray-term", "deployment-int"),
    ],
)
def test_a_stopped_command_says_how_to_go_on(
    words: list[str], ready: Ready, number: signal.Signals, group: bool, tmp_path: Path, scratch: Path
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "gradveil", *words, "--out", str(out)]
    with started(command, scratch, lambda: ready(out)) as process:
        said = stop(process, number, group)
    assert f"what is done is kept in {out}: go on with gradveil {words[0]} --resume {out}" in said
    assert list_files(scratch) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", [SEARCH, FEDERATE], ids=["search", "federate"])
def test_a_kill_leaves_no_images_in_the_temporary_folder(words: list[str], tmp_path: Path, scratch: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "gradveil", *words, "--workers", "2", "--out", str(out)]
    with started(command, scratch, lambda: has_lines(3)(out)) as process:
        assert list_files(scratch) == []
        process.kill()
        process.wait()
    assert list_files(scratch) == []


def list_files(folder: Path) -> list[Path]:
    """List regular files; matplotlib's list of fonts, the logs of Ray and the settings of Flower hold no images."""
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if not path.parts[0].startswith(("gradveil-matplotlib-", "gradveil-flower-", "ray"))]
