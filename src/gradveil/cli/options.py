"""Options and output that the commands share."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import Style
from rich.text import Text

from gradveil.errors import printable
from gradveil.results import to_json

if TYPE_CHECKING:
    from gradveil.reports import Visible

WHAT, WHERE, HOW = "What is used", "Where it goes", "How it runs"
"""Headings of `--help`, for options that mean the same everywhere."""
DEFAULT_MODEL = "lenet-relu"
MODEL_HELP = "A model by name, or your own as package.module:factory."
DEFENCE_HELP = "A defence, as gaussian:1e-3, or your own as package.module:object"

DataName = Annotated[
    str,
    typer.Option(
        "--data", help="A name of 'gradveil data list', folder:PATH or npz:PATH for your own.", rich_help_panel=WHAT
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        help="Folder that holds the data sets, instead of $GRADVEIL_DATA or the user's cache.",
        rich_help_panel=WHAT,
    ),
]
ModelName = Annotated[str, typer.Option("--model", help=MODEL_HELP, rich_help_panel=WHAT)]
OptionalModel = Annotated[
    str | None, typer.Option("--model", help=f"{MODEL_HELP} [default: {DEFAULT_MODEL}]", rich_help_panel=WHAT)
]
"""Where weights may bring their own model."""
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Weights: a file of 'gradveil train', or a state_dict of torch (then with --model).",
        rich_help_panel=WHAT,
    ),
]
LabelsText = Annotated[
    str,
    typer.Option("--labels", help="known: the attacker is told the labels; hidden: it is not.", rich_help_panel=WHAT),
]
Out = Annotated[
    Path, typer.Option("--out", help="Folder for the results; it must be empty or new.", rich_help_panel=WHERE)
]
OptionalOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for the record; it must be empty or new. Without it nothing is kept.",
        rich_help_panel=WHERE,
    ),
]
StudyFolder = Annotated[
    Path,
    typer.Option("--out", help="Folder of the study; run again with the same one to go on.", rich_help_panel=WHERE),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.", rich_help_panel=WHERE)
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Go on with the unfinished run in this folder, with the options that it was started with.",
        rich_help_panel=WHERE,
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", help="The one seed that every random draw comes from.", rich_help_panel=HOW)
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.", rich_help_panel=HOW)]
WorkerCount = Annotated[
    int, typer.Option("--workers", help="Processes to use; the figures do not depend on it.", rich_help_panel=HOW)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Run nothing: print how much work it is, and about how long.", rich_help_panel=HOW),
]
NoOriginals = Annotated[
    bool,
    typer.Option(
        "--no-originals",
        help="Leave the private originals out of the page: figures and rebuilt pictures only.",
        rich_help_panel=WHERE,
    ),
]
NoPictures = Annotated[
    bool,
    typer.Option(
        "--no-pictures",
        help="Write no picture at all: rebuilt ones may show what originals show.",
        rich_help_panel=WHERE,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=WHERE)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the JSON record to stdout and nothing else.", rich_help_panel=WHERE)
]


@final
class PlainConsole(Console):
    """A console that shows every text as it is: it reads no markup, and control characters are shown, not obeyed.

    Unless it is `mute`, progress goes to stderr where there is no terminal.
    """

    mute = False

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


def make_console(quiet: bool, as_json: bool) -> PlainConsole:
    """Make the console for tables and progress bars; it is silent for `--quiet` and `--json`."""
    console = PlainConsole(quiet=quiet or as_json, emoji=False)
    console.mute = quiet
    return console


def print_path(console: Console, path: Path) -> None:
    """Print where a result is, on one line however long or odd its name is."""
    console.print(printable(str(path)), highlight=False, soft_wrap=True)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun.

    >>> count(1, "epoch"), count(2, "epoch"), count(1200, "reply", "replies")
    ('1 epoch', '2 epochs', '1,200 replies')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def print_json(record: Mapping[str, Any]) -> None:
    typer.echo(to_json(record), nl=False)


def visible(no_originals: bool, no_pictures: bool) -> "Visible":
    """Say which pictures are shown."""
    return "none" if no_pictures else "rebuilt" if no_originals else "all"
