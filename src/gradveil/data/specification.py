"""The grammar of `folder:` and `npz:` names: paths and options, separated by commas: `PATH,size=64,skip-broken`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gradveil.data.images import Decoding
from gradveil.data.splits import Split
from gradveil.errors import DataError, SettingsError, UnknownNameError

OPTION = re.compile(r"([a-z-]+)=(.*)")
DECODING = ("size", "channels", "skip-broken")
SPLIT = ("test-fraction", "seed")


@dataclass(frozen=True)
class Specification:
    """The text after the colon, parsed."""

    paths: tuple[str, ...]
    options: Mapping[str, str]

    def decoding(self) -> Decoding:
        """Read the options that say how images are decoded."""
        return Decoding(
            size=whole_number("size", self.options["size"]) if "size" in self.options else None,
            channels=whole_number("channels", self.options["channels"]) if "channels" in self.options else None,
            skip_broken="skip-broken" in self.options,
        )

    def split(self) -> Split:
        """Read the options that say how a test split is drawn."""
        fraction, seed = (self.options.get(name) for name in SPLIT)
        default = Split()
        return Split(
            default.test_fraction if fraction is None else real_number("test-fraction", fraction),
            default.seed if seed is None else whole_number("seed", seed),
        )

    def refuse(self, names: tuple[str, ...], reason: str) -> None:
        """Refuse options that would have no effect."""
        for name in names:
            if name in self.options:
                raise SettingsError(f"the option {name} has no effect, because {reason}: leave it out")


def parse_specification(text: str) -> Specification:
    """Read paths and options; a part that is no option is a path.

    >>> parse_specification("train*.npz,test.npz,size=64,skip-broken")
    Specification(paths=('train*.npz', 'test.npz'), options={'size': '64', 'skip-broken': ''})
    """
    paths: list[str] = []
    options: dict[str, str] = {}
    for part in text.split(","):
        match = OPTION.fullmatch(part)
        if part == "skip-broken":
            options[part] = ""
        elif match is None:
            paths.append(part)
        elif match[1] not in (*DECODING, *SPLIT):
            raise UnknownNameError("option", match[1], (*DECODING, *SPLIT))
        else:
            options[match[1]] = match[2]
    if options.get("skip-broken"):
        raise SettingsError(f"skip-broken={options['skip-broken']}: write skip-broken alone, or leave it out")
    return Specification(tuple(paths), options)


def to_path(text: str) -> Path:
    """Make a path of a text, with ~ for a person's own folder."""
    try:
        return Path(text).expanduser()
    except (RuntimeError, ValueError) as error:
        raise DataError(f"'{text}' names the folder of a person who is not known here: write the path out") from error


def is_text(name: str) -> bool:
    """Tell whether a name can be written as UTF-8, as records and pages are."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def whole_number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise SettingsError(f"{name}={value} is not possible: give a whole number") from error


def real_number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise SettingsError(f"{name}={value} is not possible: give a number") from error
