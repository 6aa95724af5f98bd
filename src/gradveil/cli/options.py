"""Options and output that the commands share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, final

import typer
from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

from gradveil.errors import OutputError, printable
from gradveil.results import claimed_folder, to_json

Out = Annotated[Path, typer.Option("--out", help="Folder for the results; it must be empty or new.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.")]
Seed = Annotated[int, typer.Option("--seed", help="The one seed that every random draw comes from.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON record to stdout and nothing else.")]

INTERRUPTED = 130


@final
class PlainConsole(Console):
    """A console that shows every text as it is: it reads no markup, and control characters are shown, not obeyed."""

    def render_str(
        self,
        text: str,
        *,
        style: str | Style = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,  # noqa: ARG002
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Render a text or the text of a table's cell."""
        shown = "\n".join(map(printable, text.split("\n")))
        return super().render_str(
            shown,
            style=style,
            justify=justify,
            overflow=overflow,
            emoji=emoji,
            markup=False,
            highlight=highlight,
            highlighter=highlighter,
        )


def make_console(quiet: bool, as_json: bool) -> Console:
    """Make the console for tables and progress bars; it is silent for `--quiet` and `--json`."""
    return PlainConsole(quiet=quiet or as_json, emoji=False)


def print_path(console: Console, path: Path) -> None:
    """Print where a result is, on one line however long or odd its name is."""
    console.print(printable(str(path)), highlight=False, soft_wrap=True)


def print_json(record: Mapping[str, Any]) -> None:
    typer.echo(to_json(record), nl=False)


@contextmanager
def run_folder(out: Path, command: str, unfinished: bool, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Yield the folder of a run: claimed for a new one, as it is for one to resume."""
    if unfinished and not resume:
        raise OutputError(f"{out} holds an unfinished run: go on with --resume, or choose another folder with --out")
    try:
        with nullcontext(out) if resume else claimed_folder(out, command, overwrite) as folder:
            yield folder
    except KeyboardInterrupt as interrupt:
        typer.echo("gradveil: interrupted; give the same options and --resume to go on", err=True)
        raise typer.Exit(INTERRUPTED) from interrupt
