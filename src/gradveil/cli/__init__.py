"""The command line: `gradveil COMMAND`."""

import sys
from typing import Annotated

import typer

from gradveil import __version__
from gradveil.cli.commands import LazyGroup, add_entries
from gradveil.errors import GradveilError
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
    """Run the command line; an error of ours is one line and exit code 2, a signal one line and 128 plus its number."""
    with watched():
        try:
            app()
        except GradveilError as error:
            if is_stopped():
                raise
            typer.echo(f"gradveil: {error}", err=True)
            sys.exit(2)
