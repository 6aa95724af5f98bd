"""Options and output that the commands share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, final

import typer
from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

from gradveil.errors import OutputError, printable
from gradveil.folders import claimed_folder, only_command
from gradveil.results import to_json
from gradveil.stops import say_on_stop

Out = Annotated[Path, typer.Option("--out", help="Folder for the results; it must be empty or new.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.")]
Seed = Annotated[int, typer.Option("--seed", help="The one seed that every random draw comes from.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the JSON record to stdout and nothing else.")]


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


@dataclass(frozen=True)
class Run:
    """The folder of a command that can be resumed: what an unfinished run is, and the files that such a run leaves."""

    command: str
    out: Path
    is_unfinished: Callable[[Path], bool]
    pieces: Sequence[str]

    @contextmanager
    def folder(self, resume: bool, overwrite: bool) -> Iterator[Path]:
        """Yield the folder: claimed for a new run, as it is for one to resume; other commands are kept out."""
        say_on_stop(self.say_what_is_kept)
        if resume:
            if not self.out.is_dir():
                raise OutputError(f"{self.out} holds no run to resume: start one there without --resume")
            with only_command(self.out, self.command):
                yield self.out
            return
        if self.is_unfinished(self.out) and not overwrite:
            raise OutputError(
                f"{self.out} holds an unfinished run: go on with --resume, start again with --overwrite, or choose "
                "another folder with --out"
            )
        with claimed_folder(self.out, self.command, overwrite, self.pieces) as folder:
            yield folder

    def say_what_is_kept(self) -> str:
        """Say what a stopped run leaves."""
        if self.is_unfinished(self.out):
            return f"what is done is kept in {self.out}: give the same options and --resume to go on"
        if (self.out / f"{self.command}.json").exists():
            return f"the result is kept in {self.out}"
        return "nothing is kept: run it again"
