"""`gradveil report`: draw an audit's page again, compare audits, or check that their files belong together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gradveil.cli.options import AsJson, NoOriginals, NoPictures, Quiet, make_console, print_json, print_path, visible
from gradveil.errors import DataError, OutputError, SettingsError, printable
from gradveil.reports import Visible, is_page, read_audit, render_audit, render_comparison, verify_audit, write_csv
from gradveil.results import OPEN, PRIVATE, record, write_file

COMPARISON = "comparison.html"

Folders = Annotated[list[Path], typer.Argument(help="Folder of an audit. Several are compared on one page.")]
Target = Annotated[
    Path | None,
    typer.Option("--out", help="Page or folder to write to: DIR/report.html unless given, or ./comparison.html."),
]
Verify = Annotated[bool, typer.Option("--verify", help="Write nothing; check that the files are unchanged.")]


def report(
    folders: Folders,
    out: Target = None,
    verify: Verify = False,
    no_originals: NoOriginals = False,
    no_pictures: NoPictures = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw the page of an audit again, compare several, or check with --verify that nothing was changed."""
    console = make_console(quiet, as_json)
    if verify:
        if out is not None or no_originals or no_pictures:
            raise SettingsError("--verify writes nothing: leave out --out, --no-originals and --no-pictures")
        lines = verify_all(folders, console)
        if as_json:
            print_json(record("report", {"folders": [*map(str, folders)]}, {"verified": lines}))
        return
    show = visible(no_originals, no_pictures)
    path = draw_one(folders[0], out, show) if len(folders) == 1 else compare(folders, out)
    if as_json:
        print_json(record("report", {"folders": [*map(str, folders)]}, {"page": str(path)}))
    print_path(console, path)


def verify_all(folders: list[Path], console: Console) -> list[str]:
    """Print and return one line for each folder that holds; the first error stands for all that do not."""
    lines, problems = [], []
    for folder in folders:
        try:
            lines.append(verify_audit(folder))
        except DataError as error:
            problems.append(str(error))
        else:
            console.print(printable(lines[-1]), highlight=False, soft_wrap=True)
    if problems:
        raise DataError("does not hold: " + "; ".join(problems))
    return lines


def draw_one(folder: Path, out: Path | None, show: Visible) -> Path:
    """Draw the page of one folder; without --out the folder's table is written again as well."""
    found, pictures = read_audit(folder)
    with written_by_an_audit(folder):
        page, table = render_audit(found, pictures, show), write_csv(found)
    path = find_target(out, folder / "report.html")
    write_file(path, page, OPEN if show == "none" or pictures is None else PRIVATE)
    if out is None:
        write_file(folder / "audit.csv", table)
    return path


@contextmanager
def written_by_an_audit(*folders: Path) -> Iterator[None]:
    """Refuse records with values of other kinds than an audit writes; a seal is no proof of who wrote it."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        names = " or ".join(map(str, folders))
        raise DataError(f"{names} holds values that no audit writes ({error}): run the audit again") from error


def compare(folders: list[Path], out: Path | None) -> Path:
    names = [str(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise SettingsError(f"{', '.join(names)}: name each folder once")
    records = {name: read_audit(Path(name))[0] for name in names}
    with written_by_an_audit(*folders):
        page = render_comparison(records)
    path = find_target(out, Path(COMPARISON))
    write_file(path, page, OPEN)
    return path


def find_target(out: Path | None, default: Path) -> Path:
    """Say where the page goes; a file that is no page of ours is never replaced."""
    path = default if out is None else out
    if path.suffix != ".html" or path.is_dir():
        path = path / default.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not is_page(path.read_text(encoding="utf-8", errors="replace")):
            raise OutputError(f"{path} is not a page of gradveil: choose another place with --out")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error
    return path
