"""Code of a person's own, which they name themselves as `package.module:object`; a name in a file imports nothing."""

import hashlib
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from gradveil.errors import SettingsError

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""How such a name is written; what follows the colon of `gaussian:1e-3` begins with a digit."""
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class OwnObject(Generic[Kind]):
    """An object of a person's own, and the SHA-256 of the file that defines it."""

    name: str
    value: Kind
    sha256: str


def is_own(name: str) -> bool:
    """Tell whether a name is written as that of a person's own object.

    >>> is_own("my_package.attacks:Mine"), is_own("gaussian:1e-3"), is_own("fast")
    (True, False, False)
    """
    return NAME.fullmatch(name) is not None


def import_named(kind: str, name: str) -> Any:
    """Import what `package.module:object` names, from the current folder too."""
    module, _, attributes = name.partition(":")
    search_current_folder()
    try:
        found: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (Exception, SystemExit) as error:  # importing runs a person's own code, which can raise anything
        raise SettingsError(
            f"{kind} '{name}' cannot be imported: {in_one_line(error)}; write package.module:object for a module in "
            "the current folder or on Python's path"
        ) from error
    return found


def find_own(kind: str, name: str, wanted: type[Kind]) -> OwnObject[Kind]:
    """Import an object of the type that is wanted, or make it: by its class, or by a function without arguments."""
    found = import_named(kind, name)
    if not isinstance(found, wanted) and callable(found):
        try:
            found = found()
        except (Exception, SystemExit) as error:  # as above
            raise SettingsError(
                f"{kind} '{name}' cannot be made: {in_one_line(error)}; it is called without arguments, so name a "
                "function that gives them"
            ) from error
    if not isinstance(found, wanted):
        raise SettingsError(
            f"{kind} '{name}' is {type(found).__name__}: it must be a gradveil.{wanted.__name__}, its class, or a "
            "function without arguments that returns one"
        )
    return OwnObject(name, found, hash_source(name))


def hash_source(name: str) -> str:
    """Hash the file of the module that a name is of, so that a record can tell whether it was changed."""
    module: ModuleType = sys.modules[name.partition(":")[0]]
    path = module.__dict__.get("__file__")
    return hashlib.sha256(Path(path).read_bytes() if path else b"").hexdigest()


def search_current_folder() -> None:
    """Put the current folder first on Python's path, as `python -m` does; worker processes inherit the path."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def in_one_line(error: BaseException) -> str:
    """Say what an error of a person's own code was; torch writes several lines."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
