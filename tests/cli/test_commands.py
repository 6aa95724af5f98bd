"""The command line starts without torch, and its table of commands says what the commands say of themselves."""

import re
import subprocess
import sys

import click
import pytest

from gradveil.cli.commands import COMMANDS, load_command

HEAVY = ("torch", "numpy", "scipy", "matplotlib", "PIL")
START = f"""
import sys
from gradveil.cli import main
try:
    main()
finally:
    print("imported:", *sorted(set({HEAVY}) & set(sys.modules)))
"""


def start(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a fresh process that prints the heavy packages it imported."""
    return subprocess.run([sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--version"], 0, "gradveil 0."),
        (["--help"], 0, "List, describe and download data sets."),
        (["-h"], 0, "Usage:"),
        (["adit"], 2, "gradveil: no such command 'adit', did you mean 'audit'?; see gradveil --help"),
    ],
)
def test_nothing_heavy_is_imported_before_a_command_needs_it(arguments: list[str], code: int, message: str) -> None:
    ended = start(*arguments)
    assert ended.returncode == code
    assert message in ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1] == "imported:"


@pytest.mark.parametrize("word", ["--help", "--version", "adit", "--hlep"])
def test_the_start_imports_few_modules(word: str) -> None:
    """Half a second of processor time is the limit; modules are counted, because a busy machine has no clock."""
    count = f"{START}    print('modules:', len(sys.modules), *sorted({{'rich', 'asyncio'}} & set(sys.modules)))\n"
    ended = subprocess.run([sys.executable, "-c", count, word], capture_output=True, text=True, check=False)
    counted = re.search(r"modules: (\d+)$", ended.stdout, re.MULTILINE)
    assert counted is not None, ended.stdout
    assert int(counted[1]) < 250


def test_a_command_imports_what_it_needs() -> None:
    ended = start("transforms", "--help")
    assert ended.returncode == 0
    assert "torch" in ended.stdout.splitlines()[-1]


def test_the_package_runs_as_a_module() -> None:
    ended = subprocess.run([sys.executable, "-m", "gradveil", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("gradveil ")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_repeats_the_first_line_of_each_command(name: str) -> None:
    command = load_command(name)
    assert command.name == name
    assert isinstance(command, click.Group) == (COMMANDS[name].attribute == "app")
    assert command.help is not None
    assert command.help.partition("\n\n")[0].replace("\n", " ") == COMMANDS[name].help
