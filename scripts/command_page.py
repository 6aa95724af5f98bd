"""Print docs/commands.md, the help of every command, from the command line itself; with `--write` write the page."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from gradveil.cli.commands import COMMANDS, load_command

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
HEAD = """# Commands

What `gradveil COMMAND --help` says, for every command. `python -m scripts.command_page --write` makes this page.
"""
OF_THE_MACHINE = ("--workers",)
"""Options whose default depends on the machine; the page does not print it."""
PREFORMATTED = "\b"


def make_page() -> str:
    """Make the whole page, command by command."""
    parts = [HEAD]
    for name in sorted(COMMANDS):
        parts += describe(load_command(name), f"gradveil {name}", 2)
    return "\n".join(parts)


def describe(command: click.Command, path: str, level: int, told: dict[str, str] | None = None) -> Iterator[str]:
    """Describe a command and those below it; `told` are options that a command beside it has been described with."""
    yield f"{'#' * level} {path}\n"
    yield from write_prose(command.help or "")
    context = click.Context(command, info_name=path)
    yield f"```text\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```\n"
    options = "\n".join(write_options(command))
    first = path if told is None else told.setdefault(options, path)
    if options:
        yield options if first == path else f"Options: those of `{first}`.\n"
    yield from write_prose(command.epilog or "")
    shared: dict[str, str] = {}
    for name, below in sorted(command.commands.items()) if isinstance(command, click.Group) else ():
        yield from describe(below, f"{path} {name}", level + 1, shared)


def write_prose(text: str) -> Iterator[str]:
    """Write help as paragraphs; one that is kept as it is becomes a block, under its heading if it has one."""
    for paragraph in filter(str.strip, text.split("\n\n")):
        if not paragraph.startswith(PREFORMATTED):
            yield f"{escape(' '.join(paragraph.split()))}\n"
            continue
        lines = paragraph.removeprefix(PREFORMATTED).strip("\n").splitlines()
        if lines[0].endswith(":"):
            yield f"{lines.pop(0)}\n"
        yield "\n".join(["```sh", *(line.strip() for line in lines), "```", ""])


def write_options(command: click.Command) -> Iterator[str]:
    """Write one table for each heading under which the help lists options."""
    groups: dict[str, list[str]] = {}
    for parameter in command.params:
        if not vars(parameter).get("hidden"):
            groups.setdefault(heading_of(parameter), []).append(write_parameter(parameter))
    for heading, lines in groups.items():
        yield "\n".join([f"| {heading.lower()} | meaning |", "|---|---|", *lines, ""])


def heading_of(parameter: click.Parameter) -> str:
    """Find the heading of a parameter; typer keeps the one that an option names under this key."""
    named = vars(parameter).get("rich_help_panel")
    return str(named or ("Arguments" if isinstance(parameter, click.Argument) else "Options"))


def write_parameter(parameter: click.Parameter) -> str:
    """Write a line: names and value, then what it means and its default."""
    names = ", ".join(f"`{name}`" for name in name_parameter(parameter)).replace("|", r"\|")
    meaning = escape(str(vars(parameter).get("help") or ""))
    return f"| {names} | {meaning}{write_default(parameter)} |"


def name_parameter(parameter: click.Parameter) -> Iterator[str]:
    if isinstance(parameter, click.Argument):
        yield (parameter.metavar or str(parameter.name).upper()) + ("" if parameter.nargs == 1 else "...")
        return
    flag = isinstance(parameter, click.Option) and parameter.is_flag
    value = "" if flag else f" {parameter.metavar or name_type(parameter.type)}"
    yield from (f"{name}{value}" for name in (*parameter.opts, *parameter.secondary_opts))


def name_type(kind: click.ParamType) -> str:
    return "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else kind.name.upper()


def write_default(parameter: click.Parameter) -> str:
    """Write the default where there is one that a reader can use."""
    default = parameter.default
    told = isinstance(parameter, click.Option) and parameter.show_default is not False
    if not told or default is None or callable(default) or set(parameter.opts) & set(OF_THE_MACHINE):
        return ""
    if isinstance(default, bool):
        return f" Default: `{parameter.opts[0]}`." if default and parameter.secondary_opts else ""
    values = default if isinstance(default, (list, tuple)) else [default]
    return f" Default: {', '.join(f'`{value}`' for value in values)}." if values else ""


def escape(text: str) -> str:
    """Keep signs of the help from being read as a table or as HTML; what stands in backticks stays."""
    plain = text.replace("\\[", "[").replace("\n", " ")
    parts = re.split(r"(`[^`]*`)", plain)
    escaped = [part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*") for part in parts]
    return "".join(escaped).replace("|", r"\|")


def main() -> None:
    """Print the page, or write it."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(make_page())
    else:
        print(make_page(), end="")


if __name__ == "__main__":
    main()
