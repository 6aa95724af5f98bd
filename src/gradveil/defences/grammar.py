"""How a defence with parameters is written and read: `name:value` or `name:key=value:key=value`."""

from abc import abstractmethod
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, TypeVar

from gradveil.defences.base import Defence
from gradveil.errors import SettingsError


class Parametrised(Defence):
    """A defence whose parameters are the fields of its dataclass, whole numbers or floats.

    `allowed` says how it is written and within what range; every refusal ends with it.
    """

    name: ClassVar[str]
    allowed: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.is_allowed():
            raise SettingsError(f"{self}: {self.allowed}")

    @abstractmethod
    def is_allowed(self) -> bool:
        """Tell whether every parameter is in its range; NaN never is."""

    def __str__(self) -> str:
        return ":".join([self.name, *(write(self, entry) for entry in parameters(type(self)) if is_told(self, entry))])


Kind = TypeVar("Kind", bound=Parametrised)


def parameters(kind: type[Parametrised]) -> tuple["Field[Any]", ...]:
    # Every final subclass is a dataclass; the abstract class itself is not.
    return fields(kind)  # type: ignore[arg-type]


def required(kind: type[Parametrised]) -> list[str]:
    return [entry.name for entry in parameters(kind) if entry.default is MISSING]


def is_told(defence: Parametrised, entry: "Field[Any]") -> bool:
    """Tell whether a parameter has to be written: it has no default, or another value."""
    return entry.default is MISSING or getattr(defence, entry.name) != entry.default


def write(defence: Parametrised, entry: "Field[Any]") -> str:
    """Write a parameter; the only one that is required stands without its name."""
    value = getattr(defence, entry.name)
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return text if required(type(defence)) == [entry.name] else f"{entry.name}={text}"


def read(kind: type[Kind], text: str) -> Kind:
    """Make a defence of what stands after its name; anything unknown, missing or given twice is refused."""
    types = {entry.name: int if entry.type is int else float for entry in parameters(kind)}
    values: dict[str, Any] = {}
    for position, part in enumerate(text.split(":") if text else []):
        key, equals, value = part.partition("=")
        if not equals and position == 0 and len(required(kind)) <= 1:
            key, value = next(iter(types), ""), part
        if key not in types or key in values:
            raise SettingsError(f"{kind.name}:{text} has '{part}', which cannot be used: {kind.allowed}")
        values[key] = convert(kind, text, value, types[key])
    missing = [key for key in required(kind) if key not in values]
    if missing:
        raise SettingsError(
            f"{':'.join(filter(None, [kind.name, text]))} lacks {' and '.join(missing)}: {kind.allowed}"
        )
    return kind(**values)


def convert(kind: type[Parametrised], text: str, value: str, to: type[int] | type[float]) -> float:
    try:
        return to(value)
    except ValueError as error:
        wanted = "a whole number" if to is int else "a number"
        raise SettingsError(f"{kind.name}:{text} has '{value}', which is not {wanted}: {kind.allowed}") from error
