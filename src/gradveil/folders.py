"""Result folders: how one is claimed, kept for one command at a time, and cleared of what a kill left."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from io import FileIO
from pathlib import Path

from gradveil.errors import OutputError
from gradveil.results import PART

LOCK = ".gradveil.lock"
"""Locked by the command at work in a folder, whose name it holds. It stays if that command does not end well."""


@contextlib.contextmanager
def only_writer(path: Path, busy: str) -> Iterator[FileIO]:
    """Hold a lock on the file at `path` for a block; while another process holds it, refuse with `busy`.

    A kill lets go of the lock.
    """
    while True:
        stream = open_lock(path)
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OutputError(busy) from error
            # Whoever held it before may have removed it since it was opened here.
            if path.exists() and path.stat().st_ino == os.fstat(stream.fileno()).st_ino:
                yield stream
                return


def open_lock(path: Path) -> FileIO:
    try:
        return path.open("a+b", buffering=0)
    except OSError as error:
        raise OutputError(
            f"cannot write to {path.parent}: {error.strerror}; choose another folder with --out"
        ) from error


@contextlib.contextmanager
def only_command(folder: Path, command: str, check: Callable[[bool], None] | None = None) -> Iterator[None]:
    """Keep other commands out of a folder while the block runs.

    `check`, if the command begins something new there, is called before anything changes, and told whether such a
    command did not end well there before.
    """
    place = folder / LOCK
    busy = f"another command is at work in {folder}: wait for it, or choose another folder with --out"
    with only_writer(place, busy) as stream:
        stream.seek(0)
        before = stream.read().decode(errors="replace")
        try:
            if check is not None:
                check(before == command)
                mark(stream, command)
            remove_parts(folder)
            yield
        except BaseException:
            if not list_entries(folder) or not stream.seek(0, os.SEEK_END):
                place.unlink()
            raise
        place.unlink()


def is_busy(folder: Path) -> bool:
    """Tell whether a command is at work in a folder; a kill lets go of its lock."""
    try:
        with (folder / LOCK).open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def mark(stream: FileIO, command: str) -> None:
    """Write the command's name into its lock; on a full disk there is none."""
    with contextlib.suppress(OSError):
        stream.truncate(0)
        stream.write(command.encode())


def list_entries(folder: Path) -> list[str]:
    """List what is in a folder apart from the lock."""
    return [entry.name for entry in folder.iterdir() if entry.name != LOCK]


def remove_parts(folder: Path) -> None:
    """Remove files that a kill cut short while they were written; they may hold private images."""
    for path in folder.rglob(f".*{PART}"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def claimed_folder(path: Path, command: str, overwrite: bool = False, pieces: Sequence[str] = ()) -> Iterator[Path]:
    """Claim a folder for the results of a command while the block runs, and keep other commands out.

    A folder that is not empty is refused, except with `overwrite` if it holds something of the same command: its
    result, the lock of one that did not end well, or a file whose name fits one of the `pieces`. If the block fails
    before it writes anything, a new folder is removed.
    """
    existed = path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}; choose another folder with --out") from error

    def check(cut_short: bool) -> None:
        check_claim(path, command, overwrite, cut_short, pieces)

    try:
        with only_command(path, command, check):
            yield path
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def check_claim(path: Path, command: str, overwrite: bool, cut_short: bool, pieces: Sequence[str]) -> None:
    """Refuse a folder that holds something else, or something that nobody allowed to overwrite."""
    entries = list_entries(path)
    if entries and not overwrite:
        raise OutputError(f"{path} is not empty: choose another folder with --out, or pass --overwrite")
    wanted = (f"{command}.json", *pieces)
    if entries and not cut_short and not any(fnmatch(entry, piece) for entry in entries for piece in wanted):
        raise OutputError(
            f"{path} holds no earlier result of 'gradveil {command}' to overwrite: choose another folder with --out"
        )
