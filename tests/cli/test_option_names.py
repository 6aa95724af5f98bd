import subprocess
import sys

import click
import pytest

from gradveil.cli.commands import COMMANDS, load_command
from gradveil.cli.option_names import OPTIONS, check_options
from gradveil.errors import InputError


def options_of(command: click.Command) -> set[str]:
    options = [one for one in command.params if isinstance(one, click.Option)]
    names = {name for one in options for name in (*one.opts, *one.secondary_opts)}
    return {name.removeprefix("--") for name in names if name.startswith("--")}


def test_the_table_is_that_of_the_commands() -> None:
    loaded = {name: load_command(name) for name in COMMANDS}
    groups = {name: one for name, one in loaded.items() if isinstance(one, click.Group)}
    loaded |= {f"{name} {below}": one for name, group in groups.items() for below, one in group.commands.items()}
    assert {path: set(names.split()) for path, names in OPTIONS.items()} == {
        path: options_of(command) for path, command in loaded.items()
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit", "--stps", "3"), "there is no option --stps, did you mean --steps?; see gradveil audit --help"),
        (("audit", "--stps=3"), "there is no option --stps, did you mean --steps?"),
        (
            ("data", "info", "x", "--jsn"),
            "there is no option --jsn, did you mean --json?; see gradveil data info --help",
        ),
        (("train", "--zzzz"), "there is no option --zzzz; see gradveil train --help"),
    ],
)
def test_a_mistyped_option_is_told(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_options(list(words))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--steps", "3", "--out=x", "-q", "--help"),
        ("train", "--no-base", "--policy", "3-1-7"),
        ("train", "--out", "--odd-name"),
        ("score", "--", "--3"),
        ("--version",),
        ("adit", "--stps"),
        ("reproduce", "table-9", "--scale", "smoke"),
        (),
    ],
)
def test_what_may_be_right_is_let_pass(words: tuple[str, ...]) -> None:
    check_options(list(words))


def test_torch_is_not_imported_for_it() -> None:
    code = "import sys\nfrom gradveil.__main__ import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code, "audit", "--stps"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "False\n")
    assert ended.stderr.count("\n") == 1
