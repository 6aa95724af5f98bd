"""Every `gradveil …` line of README and documentation names commands and options that are there."""

import re
import shlex
from pathlib import Path

import click
import pytest

from gradveil.cli.commands import COMMANDS, load_command

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LOADED = {name: load_command(name) for name in COMMANDS}
LINE = re.compile(r"^(?: {4}|\$ )?gradveil (.+)$", re.MULTILINE)
INLINE = re.compile(r"`gradveil ([^`]+)`")


def printed(page: Path) -> list[str]:
    """List what stands after `gradveil`, without comments and without mentions that leave something out."""
    text = page.read_text().replace("\\\n", " ")
    found = [*LINE.findall(text), *(" ".join(words.split()) for words in INLINE.findall(text))]
    return [fill_in(line) for line in dict.fromkeys(found) if "…" not in line and "[OPTIONS]" not in line]


def fill_in(line: str) -> str:
    """Write a number for n and N, and what is optional as if it were given."""
    return re.sub(r"(?<= )[nN](?= |$)", "3", re.sub(r"[][]", "", line.replace("\\|", "|")))


LINES = [(page.name, line) for page in PAGES for line in printed(page)]


def parse(words: list[str]) -> None:
    """Let click parse the words as it would before the command is called."""
    command = LOADED[words[0]]
    if len(words) == 1 and any(parameter.required for parameter in command.params):
        return
    context = command.make_context(words[0], words[1:])
    rest = [*context.protected_args, *context.args]
    if isinstance(command, click.Group) and rest:
        name, below, others = command.resolve_command(context, rest)
        assert below is not None
        if others or not any(parameter.required for parameter in below.params):
            below.make_context(name, others, parent=context)


def test_there_are_many() -> None:
    assert len(LINES) > 100


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_the_lines_of_a_page_parse(page: str) -> None:
    wrong = []
    for name, line in LINES:
        words = shlex.split(line, comments=True)
        if name == page and words[0] in LOADED:
            try:
                parse(words)
            except click.exceptions.Exit:
                continue
            except click.BadOptionUsage:
                # "with `gradveil federate --observe`" speaks of an option without its value.
                assert words[-1].startswith("--"), line
            except click.UsageError as error:
                wrong.append(f"gradveil {line}: {error.format_message()}")
        elif name == page and not words[0].startswith("-") and words[0] != "COMMAND":
            wrong.append(f"gradveil {line}: there is no such command")
    assert wrong == []
