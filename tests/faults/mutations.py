"""Hypothesis strategies that damage bytes, JSON and texts."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gradveil.results import SEAL, seal

DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 1000, 2**31, 2**63, 2**70, -(2**70)),
    *(0.0, -0.5, 1.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan")),
    *(
        "",
        "none",
        "0",
        "1e999",
        "\x00",
        "\x1b[31m\n",
        "\ud800",
        "../../etc/passwd",
        "/dev/zero",
        "os:system",
        "x" * 3000,
    ),
    *([], [[]], [None], [0], [0.0] * 3, [1, 2, 3, 4], {}, {"a": 1}, {"name": "lenet"}, DEEP),
)
Path = tuple[str | int, ...]


@st.composite
def damaged_bytes(draw: Callable[[SearchStrategy[Any]], Any], content: bytes) -> bytes:
    """Flip, overwrite, cut, insert, repeat or erase a few parts."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(changed) - 1)))
        length = draw(st.sampled_from((1, 1, 2, 4, 8, 100)))
        match draw(st.sampled_from(("flip", "flip", "set", "cut", "insert", "remove", "repeat", "erase"))):
            case "flip" if changed:
                changed[start] ^= 1 << draw(st.integers(0, 7))
            case "set":
                changed[start : start + length] = draw(st.binary(min_size=length, max_size=length))
            case "cut":
                del changed[start:]
            case "insert":
                changed[start:start] = draw(st.binary(max_size=16))
            case "remove":
                del changed[start : start + length]
            case "repeat":
                changed[start:start] = changed[start : start + length]
            case _:
                changed[start : start + length] = bytes(len(changed[start : start + length]))
    return bytes(changed)


def paths_in(value: Any, here: Path = ()) -> Iterator[Path]:
    """List the places of a JSON value, the whole left out, to some depth."""
    if len(here) > 6:
        return
    entries = value.items() if isinstance(value, dict) else enumerate(value[:8]) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*here, key)
        yield from paths_in(inner, (*here, key))


@st.composite
def damaged_record(draw: Callable[[SearchStrategy[Any]], Any], record: dict[str, Any]) -> dict[str, Any]:
    """Replace, remove, rename or add single values of a JSON object."""
    changed: dict[str, Any] = json.loads(json.dumps(record))
    for _ in range(draw(st.integers(1, 2))):
        places = [place for place in paths_in(changed) if place != (SEAL,)]
        if not places:
            break
        *way, last = places[draw(st.integers(0, len(places) - 1))]
        inner: Any = changed
        for key in way:
            inner = inner[key]
        action = draw(st.sampled_from(("replace", "replace", "replace", "remove", "rename")))
        if action == "replace" or isinstance(inner, list):
            inner[last] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
        elif action == "remove":
            del inner[last]
        else:
            inner[draw(st.sampled_from(("", "x", "module", "name")))] = inner.pop(last)
    return changed


def reseal(record: dict[str, Any]) -> bytes:
    """Write a record with a seal that holds, so that what is behind the seal is tried too; NaN cannot be sealed."""
    try:
        return json.dumps(seal(record)).encode()
    except ValueError:
        return json.dumps(record).encode()


def odd_texts(*examples: str) -> SearchStrategy[str]:
    """Texts near to valid ones, and any others."""
    alphabet = st.sampled_from("0123456789-+:,=./_#%~* \n\x00\x1b²٣aebinoprstx[]{}é\udce9")
    pieces = st.sampled_from(examples) | st.text(alphabet, max_size=12) | st.text(max_size=4)
    return st.lists(pieces, min_size=1, max_size=3).map("".join)
