"""Folders of studies: what is refused before a study runs, and before its table is written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from gradveil.errors import OutputError, SettingsError
from gradveil.experiments.versions import PRESENT, require_one_version, require_present_version
from gradveil.folders import only_command
from gradveil.journal import Journal
from gradveil.stops import say_on_stop
from gradveil.study import to_text

KEPT = "gradveil.folder"

MISSHAPEN = (KeyError, TypeError, AttributeError, ValueError, IndexError)


def prepare_folder(
    out: Path,
    table: bool,
    fields: Sequence[str],
    study: str,
    file: str = "journal.jsonl",
    versions: Mapping[str, int | None] = PRESENT,
) -> None:
    """Refuse a folder that holds no such study, for its table, or results of another version, to go on with.

    Every line of the study's journal has the `fields`; `trial.part` is the field `part` in the field `trial`.
    `versions` are those of what the study runs today.
    """
    journal = out / file
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is no folder: name the folder of a study with --out")
    entries = Journal(journal).read()
    if any(not has_field(entry, field) for entry in entries for field in fields):
        raise SettingsError(f"{journal} is of another study than 'reproduce {study}': name its own folder with --out")
    refuse_copies(entries, journal)
    if table:
        if not entries:
            raise SettingsError(f"{journal} holds no results for a table: name the folder of a study with --out")
        require_one_version(entries, journal)
    else:
        require_present_version(entries, journal, versions)
        keep_others_out(out)


def refuse_copies(entries: Sequence[Mapping[str, Any]], journal: Path) -> None:
    """Refuse a line that stands twice: a study writes none again, and a table would count it twice."""
    first: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        before = first.setdefault(to_text(entry), number)
        if before != number:
            raise OutputError(f"{journal}, line {number}, is a copy of line {before}: remove one of them")


def keep_others_out(out: Path) -> None:
    """Make the folder of a study, and keep other commands that write there out until this one ends."""
    context = click.get_current_context()
    if context.meta.get(KEPT) == out:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}; choose another folder with --out") from error
    context.with_resource(only_command(out, "reproduce"))
    context.meta[KEPT] = out
    say_on_stop(lambda: f"what is done is kept in {out}: run the same command again to go on")


def has_field(entry: Mapping[str, Any], field: str) -> bool:
    """Tell whether an entry has a field and all on the way to it are objects."""
    name, _, rest = field.partition(".")
    inner = entry.get(name)
    return name in entry and (not rest or (isinstance(inner, dict) and has_field(inner, rest)))


@contextmanager
def own_journal(out: Path, study: str, table: bool) -> Iterator[None]:
    """Turn what goes wrong when a table is made of a journal that is of no such study into one line."""
    try:
        yield
    except MISSHAPEN as error:
        if not table:
            raise
        raise SettingsError(
            f"{out} holds no journal that 'reproduce {study}' wrote ({type(error).__name__}: {error}): name the folder "
            "of the study with --out; no table was written"
        ) from error


def require_results(journal: Path, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Refuse to write a table without results of something that was asked for: a good one may be there."""
    missing = [name for name in wanted if name not in found]
    if missing or not found:
        known = f"it has those of {', '.join(found)}" if found else "it has none of this study"
        raise SettingsError(
            f"{journal} has no results{' of ' + missing[0] if missing else ''}: {known}; no table was written"
        )
