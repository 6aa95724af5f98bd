"""The results convention."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradveil import __version__
from gradveil.errors import DataError, OutputError, SettingsError, UnknownNameError
from gradveil.losses import CrossEntropy, Loss, parse_loss
from gradveil.results import (
    commit,
    parse_sealed,
    read_hashed,
    read_sealed,
    read_settings,
    record,
    seal,
    to_json,
    write_file,
)


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "first")
    write_file(tmp_path / "a.txt", b"second")
    assert (tmp_path / "a.txt").read_text() == "second"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="--out"):
        write_file(tmp_path / "missing" / "a.txt", "text")


def test_a_record_says_where_it_comes_from() -> None:
    read = json.loads(to_json(record("audit", {"seed": 1}, {"rows": []})))
    assert (read["schema"], read["command"], read["settings"], read["rows"]) == (1, "audit", {"seed": 1}, [])
    assert read["environment"]["gradveil"] == __version__
    assert read["environment"]["cores"] >= 1
    assert {"commit", "torch", "processor"} <= set(read["environment"])


def test_the_commit_is_that_of_our_own_checkout_only(tmp_path: Path) -> None:
    package = tmp_path / "src" / "gradveil"
    package.mkdir(parents=True)
    assert commit(package) is None
    commit.cache_clear()
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert commit(package) == head.stdout.strip()
    # A package that is installed within someone's repository is of no commit of theirs.
    installed = tmp_path / "site-packages" / "gradveil"
    installed.mkdir(parents=True)
    assert commit(installed) is None
    commit.cache_clear()


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json({"value": float("nan")})


@dataclass(frozen=True)
class Example:
    count: int
    sides: tuple[int, ...] = ()
    loss: Loss | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise SettingsError("at least 1")


def test_settings_are_read_from_json() -> None:
    assert read_settings(Example, {"count": 2}, "example") == Example(2)
    record = {"count": 2, "sides": [3, 4], "loss": "cross-entropy"}
    assert read_settings(Example, record, "example", loss=parse_loss) == Example(2, (3, 4), CrossEntropy())
    assert read_settings(Example, {"count": 2, "loss": None}, "example", loss=parse_loss) == Example(2)


def test_settings_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown example setting 'cont'.*did you mean 'count'"):
        read_settings(Example, {"cont": 2}, "example")
    with pytest.raises(SettingsError, match="at least 1"):
        read_settings(Example, {"count": 0}, "example")
    with pytest.raises(SettingsError, match=r"the example settings .* cannot be read"):
        read_settings(Example, {}, "example")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_settings(Example, {"count": "two"}, "example", count=int)


def test_a_sealed_record_comes_back_and_a_changed_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_file(path, to_json(seal({"b": [1, 2.5], "a": {"é": None}})))
    assert read_sealed(path)["b"] == [1, 2.5]
    path.write_text(path.read_text().replace("2.5", "2.6"))
    with pytest.raises(DataError, match=r"record\.json was changed or damaged"):
        read_sealed(path)
    with pytest.raises(DataError, match=r"missing\.json cannot be read: No such file"):
        read_sealed(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"5", "holds no record"),
        (b"{}", "has no seal"),
        (b"{", "cannot be read as JSON"),
        (b"\xff", "cannot be read as JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"sha256_of_content": NaN}', "changed or damaged"),
        (b'{"value": 1e999, "sha256_of_content": ""}', "changed or damaged"),
    ],
)
def test_what_is_no_sealed_record_is_said(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sealed(text)


def test_a_file_must_have_the_hash_that_its_record_holds(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"weights")
    assert read_hashed(path, hashlib.sha256(b"weights").hexdigest()) == b"weights"
    with pytest.raises(DataError, match="SHA-256 differs"):
        read_hashed(path, "0" * 64)
    with pytest.raises(DataError, match="cannot be read"):
        read_hashed(tmp_path / "missing", "0" * 64)
