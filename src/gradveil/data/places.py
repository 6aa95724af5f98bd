"""Where the files of a data set may lie on this machine."""

import os
from collections.abc import Sequence
from pathlib import Path

from gradveil.errors import DataError

VARIABLE = "GRADVEIL_DATA"


def data_root() -> Path:
    """Give the folder for downloads: $GRADVEIL_DATA, else the user's cache."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gradveil" / "data"


def folders(name: str, root: Path | None, *system: Path) -> list[Path]:
    """List where to look for the data set called `name`, best first; a `root` that was asked for is the only place."""
    if root is None:
        return [data_root() / name, data_root(), *system]
    if not root.is_dir():
        raise DataError(f"{root} is no folder: --root needs the folder that holds the files of {name}")
    return [root / name, root]


def missing(name: str, wanted: str, looked: Sequence[Path]) -> DataError:
    """Say that a data set is not there, where it was looked for, and how to get it."""
    return DataError(
        f"{name} is not on this machine: no {wanted} in {' or '.join(str(folder) for folder in looked)}; "
        f"run 'gradveil data get {name}', or set {VARIABLE} to the folder that holds it"
    )
