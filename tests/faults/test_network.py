"""No command talks to a network, except those that say so: sockets are watched in the process and all its children."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradveil.cli.commands import COMMANDS
from tests.faults.scenarios import write_data

ROOT = Path(__file__).parents[2]
WATCH = """
import os, socket, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
        if arguments[0].family in (socket.AF_INET, socket.AF_INET6):
            refuse(f"{event} {arguments[1]}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        refuse(f"{event} {arguments[0]}")

def refuse(what):
    with open(os.environ["GRADVEIL_SOCKETS"], "a") as stream:
        stream.write(what + "\\n")
    raise PermissionError(1, "sockets are blocked")

sys.addaudithook(watch)
"""
RUN = """
import json, os, sys
from gradveil.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["gradveil", *words]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print("ended", code, *words[:2], file=sys.stderr, flush=True)
"""


def list_commands(folder: Path) -> list[list[str]]:
    """List one small run of each command; two of them share their work with other processes."""
    data = ["--data", f"npz:{folder / 'data.npz'}"]
    lenet = [*data, "--model", "lenet", "--quiet"]
    trained, audited = folder / "train", folder / "audit"
    attack = ["--attack", "adam-cosine", "--steps", "2", "--images", "2"]
    audit = [*lenet, *attack, "--phase", "init", "--defence", "none", "--workers", "2"]
    federate = [*lenet, "--clients", "2", "--rounds", "1", "--workers", "2"]
    search = [*data, "--model", "lenet-relu", "--quiet", "--candidates", "4", "--epochs", "1", "--images", "2"]
    table = ["reproduce", "told-defences", "--table", "--quiet", "--out", str(folder / "study")]
    dp = ["--clip", "1", "--sensitivity", "1", "--epsilon", "1", "--delta", "1e-5", "--json"]
    return [
        ["train", *lenet, "--recipe", "fast", "--epochs", "1", "--out", str(trained)],
        ["attack", *lenet, *attack, "--out", str(folder / "attack")],
        ["audit", *audit, "--out", str(audited)],
        ["report", str(audited)],
        ["report", str(audited), "--verify"],
        ["federate", *federate, "--out", str(folder / "federate")],
        ["inspect", str(trained / "final.safetensors"), "--json"],
        ["score", "3-1-7", *data, "--images", "2", "--batches", "1", "--quadrature", "lobatto-3"],
        ["search", *search, "--keep", "1", "--workers", "1", "--out", str(folder / "search")],
        ["check-dp", *dp],
        ["data", "list"],
        ["data", "info", f"npz:{folder / 'data.npz'}"],
        table,
        ["transforms", "--json"],
    ]


def run_blocked(folder: Path, commands: list[list[str]]) -> tuple[list[str], str, list[str]]:
    """Run commands in one process with sockets blocked there and in all its children: ends, errors, attempts."""
    (folder / "watch").mkdir()
    (folder / "watch" / "sitecustomize.py").write_text(WATCH)
    attempts = folder / "attempts"
    attempts.touch()
    paths = os.pathsep.join([str(folder / "watch"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "GRADVEIL_SOCKETS": str(attempts), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", RUN, json.dumps(commands)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    lines = done.stderr.splitlines()
    ends = [line for line in lines if line.startswith("ended ")]
    return ends, "\n".join(line for line in lines if line not in ends), attempts.read_text().splitlines()


@pytest.mark.slow
def test_no_command_opens_a_socket(tmp_path: Path) -> None:
    write_data(tmp_path / "data.npz")
    study = tmp_path / "study"
    study.mkdir()
    (study / "journal.jsonl").write_bytes((ROOT / "docs/measured/told-defences/journal.jsonl").read_bytes())
    commands = list_commands(tmp_path)
    assert {words[0] for words in commands} == set(COMMANDS), "every command is run"
    ends, said, attempts = run_blocked(tmp_path, commands)
    assert ends == [" ".join(["ended 0", *words[:2]]) for words in commands], said
    assert attempts == []


def test_the_block_is_seen_by_a_command_that_needs_a_network(tmp_path: Path) -> None:
    """`data get` fails in one line, and what it tried is noted."""
    ends, said, attempts = run_blocked(tmp_path, [["data", "get", "cifar10", "--root", str(tmp_path / "data")]])
    assert ends == ["ended 2 data get"]
    assert said.startswith("gradveil: ")
    assert "\n" not in said
    assert attempts
