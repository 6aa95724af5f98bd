"""What the registry knows of a named data set."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gradveil.data.base import DataSet, Progress
from gradveil.data.download import RemoteFile


@dataclass(frozen=True)
class NamedSource:
    """A data set that has a name: how to find it on this machine, how to load it, and what to download for it."""

    description: str
    find: Callable[[Path | None], Path | None]
    load: Callable[[Path | None, Progress], DataSet]
    files: tuple[RemoteFile, ...] = ()


@dataclass(frozen=True)
class PathSource:
    """A data set of the user's own, named by what stands after the colon."""

    description: str
    load: Callable[[str, Progress], DataSet]
