"""The command line: `gradveil COMMAND`."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from gradveil import __version__
from gradveil.cli.commands import LazyGroup, add_entries
from gradveil.errors import GradveilError, InputError, printable
from gradveil.stops import is_stopped, watched

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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

    An error of ours, or of a file or folder, is one line and exit code 2; a signal one line and 128 plus its number.
    """
    with watched():
        try:
            try:
                check_arguments(sys.argv[1:])
                app()
            finally:
                sys.stdout.flush()
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
