"""A run talks on the loopback interface only and leaves the home folder empty, on every engine and without a server."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOOPBACK = {"0100007F", "0" * 24 + "01000000", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, ::1 and ::ffff:127.0.0.1 as the kernel writes them."""
LISTENS = "0A"
ENTER = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sh", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""In a new network namespace even the loopback interface is down."""


def can_isolate() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and subprocess.run([unshare, "-n", "true"], check=False, capture_output=True).returncode == 0
    )


pytestmark = pytest.mark.skipif(not can_isolate(), reason="unshare -n, a network namespace, is not permitted here")


def run_alone(arguments: list[str], home: Path, seconds: float) -> tuple[int, set[str]]:
    """Run Python in a network namespace of its own; return its exit code and the addresses that anything listened on.

    The namespace has no other processes, so the kernel's tables of it show this run only, whatever it starts.
    """
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for name in [name for name in environment if name.startswith(("XDG_", "FLWR_", "RAY_"))]:
        del environment[name]
    command = ["unshare", "-n", sys.executable, "-c", ENTER, *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        seen: set[str] = set()
        end = time.monotonic() + seconds
        own = namespace_of(os.getpid())
        while process.poll() is None:
            if time.monotonic() > end:
                process.kill()
            if namespace_of(process.pid) not in (own, ""):
                seen |= listening(process.pid)
            time.sleep(0.05)
        assert process.stderr is not None
        print(process.stderr.read().decode())
        return process.returncode, seen


def namespace_of(process: int) -> str:
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except OSError:
        return ""


def listening(process: int) -> set[str]:
    """List the addresses that anything in the network namespace of a process listens on."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        fields = [line.split() for line in lines]
        found |= {field[1].partition(":")[0] for field in fields if field[3] == LISTENS}
    return found


def test_the_test_sees_who_listens_everywhere(tmp_path: Path) -> None:
    listen = "import socket, time; server = socket.create_server(('0.0.0.0', 0)); time.sleep(1)"
    code, seen = run_alone(["-c", listen], tmp_path, 30)
    assert (code, seen) == (0, {"0" * 8})


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--engine", "ray"),
        ("--engine", "deployment"),
        ("--topology", "ring"),
        ("--topology", "full"),
    ],
    ids=lambda options: options[1],
)
def test_only_the_loopback_interface_listens_and_home_stays_empty(options: tuple[str, ...], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    run = ("--model", "lenet", "--clients", "2", "--batch-size", "4", "--rounds", "1", "--out", str(tmp_path / "run"))
    code, seen = run_alone(["-m", "gradveil", "federate", *run, *options], home, 500)
    assert code == 0
    assert seen, "the run talks over sockets"
    assert seen <= LOOPBACK
    assert list(home.rglob("*")) == []
