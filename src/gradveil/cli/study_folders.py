"""Folders of studies: what is refused before a study runs, and before its table is written."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gradveil.errors import SettingsError
from gradveil.experiments.versions import PRESENT, require_one_version, require_present_version
from gradveil.journal import Journal


def prepare_folder(
    out: Path,
    table: bool,
    field: str,
    study: str,
    file: str = "journal.jsonl",
    versions: Mapping[str, int | None] = PRESENT,
) -> None:
    """Refuse a folder that holds no such study, for its table, or results of another version, to go on with.

    Every line of the study's journal has the `field`; `versions` are those of what the study runs today.
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
        require_present_version(entries, journal, versions)
        out.mkdir(parents=True, exist_ok=True)


def require_results(journal: Path, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Refuse to write a table without results of something that was asked for: a good one may be there."""
    missing = [name for name in wanted if name not in found]
    if missing or not found:
        known = f"it has those of {', '.join(found)}" if found else "it has none of this study"
        raise SettingsError(
            f"{journal} has no results{' of ' + missing[0] if missing else ''}: {known}; no table was written"
        )
