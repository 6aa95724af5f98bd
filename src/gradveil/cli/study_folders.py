"""Folders of studies: what is refused before a study runs, and before its table is written."""

from collections.abc import Sequence
from pathlib import Path

import click

from gradveil.errors import OutputError, SettingsError
from gradveil.experiments.versions import require_one_version, require_present_version
from gradveil.folders import only_command
from gradveil.journal import Journal
from gradveil.stops import say_on_stop

KEPT = "gradveil.folder"


def prepare_folder(out: Path, table: bool, field: str, study: str, file: str = "journal.jsonl") -> None:
    """Refuse a folder that holds no such study, for its table, or results of another version, to go on with.

    Every line of the study's journal has the `field`.
    """
    journal = out / file
    entries = Journal(journal).read()
    if any(field not in entry for entry in entries):
        raise SettingsError(f"{journal} is of another study than 'reproduce {study}': name its own folder with --out")
    if table:
        if not entries:
            raise SettingsError(f"{journal} holds no results for a table: name the folder of a study with --out")
        require_one_version(entries, journal)
    else:
        require_present_version(entries, journal)
        keep_others_out(out)


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


def require_results(journal: Path, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Refuse to write a table without results of something that was asked for: a good one may be there."""
    missing = [name for name in wanted if name not in found]
    if missing or not found:
        known = f"it has those of {', '.join(found)}" if found else "it has none of this study"
        raise SettingsError(
            f"{journal} has no results{' of ' + missing[0] if missing else ''}: {known}; no table was written"
        )
