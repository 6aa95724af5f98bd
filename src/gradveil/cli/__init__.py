"""The command line: `gradveil COMMAND`."""

import os
import sys
from typing import Annotated, NoReturn

import click
import typer

from gradveil import __version__
from gradveil.cli.commands import COMMANDS, LazyGroup, add_entries
from gradveil.cli.option_names import check_options, say_unknown
from gradveil.errors import GradveilError, InputError, printable
from gradveil.stops import is_stopped, watched

FIRST_STEPS = """\b
First steps:
  gradveil audit                         audit a small model on bundled images
  gradveil audit --data folder:photos    the same on your own, a folder a class
  gradveil audit --help                  options, examples, attacks, defences
"""
app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=FIRST_STEPS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_entries(app)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gradveil {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Audit what shared gradients give away, and search for transformations that stop it."""


def main() -> None:
    """Run the command line.

    A mistyped option, an error of ours, or of a file or folder, is one line and exit code 2; a signal one line and 128
    plus its number.
    """
    with watched():
        try:
            try:
                check_arguments(sys.argv[1:])
                check_options(sys.argv[1:])
                code = app(prog_name="gradveil", standalone_mode=False)
            finally:
                sys.stdout.flush()
            sys.exit(code or 0)
        except click.UsageError as error:
            stop(describe_usage(error))
        except GradveilError as error:
            if is_stopped():
                raise
            stop(str(error))
        except OSError as error:
            if is_stopped():
                raise
            if error.filename is not None:
                stop(f"{os.fsdecode(error.filename)}: {error.strerror}; choose another file or folder")
            # Python would try to write the rest when it ends, and complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            stop(f"the output cannot be written: {error.strerror or error}")


def describe_usage(error: click.UsageError) -> str:
    """Say in one line what is wrong with the words of a command, and where help is."""
    named = next((word for word in sys.argv[1:2] if word in COMMANDS), "")
    command = f"gradveil {named}".rstrip() if error.ctx is None else error.ctx.command_path
    if isinstance(error, click.NoSuchOption):
        return say_unknown(error.option_name, list(error.possibilities or []), command)
    message = error.format_message().rstrip(".").replace(". Did you", ", did you")
    return f"{message[:1].lower()}{message[1:]}; see {command} --help"


def check_arguments(arguments: list[str]) -> None:
    """Refuse an argument that is not UTF-8 before any work: the results, which are UTF-8, could not name it."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"'{argument}' is not UTF-8: rename the file or folder") from error


def stop(message: str) -> NoReturn:
    typer.echo(f"gradveil: {printable(message)}", err=True)
    sys.exit(2)
