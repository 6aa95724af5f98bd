"""Every command's help has two examples, which can be typed as they are printed, and lists what it takes."""

import shlex
from collections.abc import Iterator

import click
import pytest

from gradveil.attacks import ATTACKS
from gradveil.cli.commands import COMMANDS, load_command
from gradveil.cli.teaching import EXAMPLES, examples_of
from gradveil.defences import DEFENCES
from gradveil.experiments.paper import EXPERIMENTS, GROUPS


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from walk(below, f"{path} {name}")


ALL = dict(pair for name in COMMANDS for pair in walk(load_command(name), name))


def help_of(path: str) -> str:
    return ALL[path].get_help(click.Context(ALL[path], info_name=f"gradveil {path}"))


def test_every_command_and_no_other_has_examples() -> None:
    study = {f"reproduce {name}" for name in (*EXPERIMENTS, *GROUPS)}
    assert set(EXAMPLES) | study == set(ALL)
    assert not set(EXAMPLES) & study


@pytest.mark.parametrize("path", ALL)
def test_examples_are_printed_and_parse(path: str) -> None:
    shown = help_of(path)
    assert len(examples_of(path)) >= 2
    for line in examples_of(path):
        assert line in shown
        words = shlex.split(line)
        assert " ".join(words).startswith(f"gradveil {path}")
        command, rest = ALL[words[1]], words[2:]
        # A wrong option, a missing argument or a value of the wrong kind is refused while the words are parsed.
        context = command.make_context(words[1], rest)
        if isinstance(command, click.Group) and context.protected_args:
            name, below, others = command.resolve_command(context, [*context.protected_args, *context.args])
            assert below is not None
            below.make_context(name, others, parent=context)


@pytest.mark.parametrize("path", ["audit", "attack", "train", "federate"])
def test_names_and_own_code_are_listed(path: str) -> None:
    shown = " ".join(help_of(path).split())
    assert "package.module:object" in shown
    assert all(f"{name}," in shown or f"{name};" in shown for name in DEFENCES)
    assert path == "train" or all(f" {name}" in shown for name in ATTACKS)


def test_what_a_preset_gives_is_told_and_options_are_in_groups() -> None:
    shown = help_of("audit")
    assert "[quick: lenet-relu]" in shown
    assert "\\[" not in shown
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[:1].isupper()]
    assert {"What is used:", "What a client does:", "Who attacks:", "Where it goes:", "How it runs:"} <= set(headings)


def test_a_study_says_nothing_of_own_code() -> None:
    assert "Your own" not in help_of("reproduce defences")
