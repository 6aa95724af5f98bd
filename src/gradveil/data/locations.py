"""Where the files of a data set can be on this machine."""

import os
from collections.abc import Sequence
from pathlib import Path

from gradveil.errors import DataError

VARIABLE = "GRADVEIL_DATA"


def data_root() -> Path:
    """Return the folder for downloads: $GRADVEIL_DATA, else the user's cache."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "gradveil" / "data"


def list_folders(name: str, root: Path | None, *system: Path) -> list[Path]:
    """List the folders to search for the data set called `name`, in order; if `root` is given, search only there."""
    if root is None:
        return [data_root() / name, data_root(), *system]
    if not root.is_dir():
        raise DataError(f"{root} is no folder: --root needs the folder that holds the files of {name}")
    return [root / name, root]


def make_missing_error(name: str, wanted: str, searched: Sequence[Path]) -> DataError:
    """Make the error that says where a data set was searched and how to get it."""
    return DataError(
        f"{name} is not on this machine: no {wanted} in {' or '.join(str(folder) for folder in searched)}; "
        f"run 'gradveil data get {name}', or set {VARIABLE} to the folder that holds it"
    )
