"""The folder of a search: claimed for a new one, kept for one writer, and opened again to resume."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradveil.data import IMAGE_CHOICE
from gradveil.errors import OutputError, SettingsError
from gradveil.folders import claimed_folder, only_command
from gradveil.journal import Journal
from gradveil.results import environment
from gradveil.search.records import JOURNAL, Records, sort_lines
from gradveil.search.settings import SearchSettings

RESULT = "search.json"
"""The file in a search's folder that holds its result."""
POLICIES = "policies.json"
PAGE = "index.html"
"""The file in a search's folder that shows how far it is."""
MODEL = "model"
COMMAND = "search"
PIECES = (JOURNAL, POLICIES, MODEL)
IMAGE_CHOICE_KEY = "image_choice"


@contextmanager
def opened_folder(
    folder: Path, settings: SearchSettings, resume: bool, overwrite: bool
) -> Iterator[tuple[Journal, Records]]:
    """Claim a folder for a new search, or go on with the one there; keep others out while the block runs."""
    begun = (folder / JOURNAL).exists()
    if resume and not begun:
        raise OutputError(f"{folder} holds no search to resume: start one there without --resume")
    if begun and not (folder / RESULT).exists() and not resume and not overwrite:
        raise OutputError(
            f"{folder} holds an unfinished search: go on with --resume {folder}, start again with --overwrite, or "
            "choose another folder with --out"
        )
    claim = claimed_folder(folder, COMMAND, overwrite, PIECES)
    with only_command(folder, COMMAND) if resume else claim:
        if not resume:
            clear(folder)
        yield open_records(folder, settings)


def clear(folder: Path) -> None:
    """Remove what an earlier search left in a folder that may be overwritten."""
    for name in (JOURNAL, RESULT, POLICIES, PAGE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / MODEL, ignore_errors=True)


def open_records(folder: Path, settings: SearchSettings) -> tuple[Journal, Records]:
    """Begin a journal, or go on with one of the same settings."""
    journal = Journal(folder / JOURNAL)
    records = sort_lines(journal.read())
    now = json.loads(json.dumps(settings.to_record()))
    if not records.header:
        header = {"study": now, IMAGE_CHOICE_KEY: IMAGE_CHOICE, "environment": environment()}
        journal.append(header)
        records.take(header)
    elif records.header.get(IMAGE_CHOICE_KEY, 1) != IMAGE_CHOICE:
        raise SettingsError(
            f"the search in {folder} was started by a version that chose its images differently: start another in a "
            "new folder"
        )
    elif changed := list_differences(records.header["study"], now):
        raise SettingsError(
            f"the search in {folder} was started with other settings: {'; '.join(changed)}. Resume it with the options "
            "it was started with, or start another in a new folder"
        )
    return journal, records


def list_differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Name every setting that differs, with both values."""
    differences = []
    for key in dict.fromkeys([*before, *now]):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            differences += list_differences(old, new, f"{prefix}{key}.")
        elif old != new:
            differences.append(f"{prefix}{key} was {old} and is {new}")
    return differences
