"""The exceptions of gradveil.

GradveilError
├── InputError              a person gave something that cannot be used
│   ├── UnknownNameError    a name that is in no registry
│   ├── PolicyError         a policy that does not parse
│   ├── SettingsError       a value outside its range, or settings that contradict each other
│   │   └── DivergenceError a training whose loss is no longer finite
│   ├── DataError           a data set that is missing, damaged or of the wrong kind
│   ├── CheckpointError     a checkpoint that does not fit the model or cannot be read
│   └── OutputError         a folder that cannot be written, or that holds another run
├── KnowledgeError          an attack needs something that the update does not carry
└── MissingExtraError       an optional dependency is not installed

Every message says what came, what is allowed, and what to do. A name from outside can hold anything: what prints it
calls `printable`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType


def printable(text: str) -> str:
    r"""Escape what a terminal would obey instead of show: control characters, line breaks, bytes that are no text.

    >>> print(printable("a\nb \x1b[31m \udce9"))
    a\nb \x1b[31m \xe9
    """
    return text if text.isprintable() else "".join(map(escape_character, text))


def escape_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    # Python reads a byte that is not UTF-8 as one of these.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else character.encode("unicode_escape").decode()


class GradveilError(Exception):
    """Root of everything gradveil raises on purpose."""


class InputError(GradveilError):
    """A person gave something that cannot be used."""


class UnknownNameError(InputError):
    """A name that is in no registry."""

    def __init__(self, kind: str, name: str, allowed: Iterable[str]) -> None:
        names = sorted(allowed)
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        super().__init__(f"unknown {kind} '{name}': choose from {', '.join(names)}{hint}")


class PolicyError(InputError):
    """A policy that does not parse."""


class SettingsError(InputError):
    """A value outside its range, or settings that contradict each other."""


class DivergenceError(SettingsError):
    """A training whose loss is no longer finite."""


class DataError(InputError):
    """A data set that is missing, damaged or of the wrong kind."""


class CheckpointError(InputError):
    """A checkpoint that does not fit the model or cannot be read."""


class OutputError(InputError):
    """A folder that cannot be written, or that holds another run."""


class KnowledgeError(GradveilError):
    """An attack needs something that the update does not carry."""


class MissingExtraError(GradveilError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: run pip install 'gradveil[{extra}]'")


def import_extra(package: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, extra) from error
