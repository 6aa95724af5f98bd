import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradveil.errors import SettingsError
from gradveil.own_code import find_own, import_named, is_own

SOURCE = """
class Kind:
    pass
class Named(Kind):
    def __init__(self, count=1): self.count = count
class Picky(Kind):
    def __init__(self, count): pass
made = Named(7)
class Shelf:
    best = Named(8)
def make(): return Named(9)
def fail(): raise ValueError("no\\nluck")
def leave(): raise SystemExit(1)
number = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "own_things.py"
    path.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield path
    sys.modules.pop("own_things", None)


@pytest.mark.parametrize(("name", "count"), [("made", 7), ("Shelf.best", 8), ("Named", 1), ("make", 9)])
def test_an_object_its_class_and_a_function_all_work(module: Path, name: str, count: int) -> None:
    kind = import_named("thing", "own_things:Kind")
    found = find_own("thing", f"own_things:{name}", kind)
    assert found.value.count == count
    assert found.sha256 == hashlib.sha256(module.read_bytes()).hexdigest()


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_things:Picky", "thing 'own_things:Picky' cannot be made: TypeError"),
        ("own_things:fail", "cannot be made: ValueError: no luck;"),
        ("own_things:leave", "cannot be made: SystemExit: 1;"),
        ("own_things:number", "is int: it must be a gradveil.Kind"),
        ("own_things:Shelf", "is Shelf: it must be"),
        ("own_things:missing", "cannot be imported: AttributeError"),
        ("no_such_module:thing", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(name: str, message: str) -> None:
    kind = import_named("thing", "own_things:Kind")
    with pytest.raises(SettingsError) as refused:
        find_own("thing", name, kind)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["my.attacks:Mine", "a:b", "a_1.b2:c.d", "módulo:ataque"])
def test_own_names(name: str) -> None:
    assert is_own(name)


@pytest.mark.parametrize(
    "name", ["fast", "gaussian:1e-3", "policy:3-1-7", "a:", ":b", "a b:c", "clip:clip=1", "../a:b"]
)
def test_other_names(name: str) -> None:
    assert not is_own(name)
