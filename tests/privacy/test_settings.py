"""Settings from outside: read as data, refused in one line."""

from pathlib import Path
from typing import Any

import pytest

from gradveil.errors import SettingsError
from gradveil.privacy.settings import Run, read_table


@pytest.mark.parametrize(
    "settings",
    [
        {"rounds": 0},
        {"rounds": 1.5},
        {"rounds": True},
        {"rounds": "3"},
        {"rounds": 10**400},
        {"sampling": 0.0},
        {"sampling": 1.1},
        {"sampling": float("nan")},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": float("inf")},
        {"delta": [1e-5]},
    ],
)
def test_a_number_out_of_range_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=rf"^{next(iter(settings))} is .*: it must be a (whole )?number from"):
        Run(**settings)


def test_what_is_stated_wins_over_the_file_and_the_file_over_the_default() -> None:
    run = Run(rounds=5).complete(rounds=7, sampling=0.5)
    assert (run.rounds, run.sampling, run.delta) == (5, 0.5, None)
    assert run.resolve() == (5, 0.5, 1e-5)
    assert Run().resolve() == (1, 1.0, 1e-5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "cannot be read as json"),
        ("a.json", "[1]", "holds no settings"),
        ("a.json", "[" * 100_000, "cannot be read"),
        ("a.toml", "a = = 1", "cannot be read as toml"),
        ("a.toml", "\x00", "cannot be read as toml"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SettingsError, match=message) as refused:
        read_table(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x80")
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "a.json"):
        with pytest.raises(SettingsError, match="cannot be read"):
            read_table(path)


def test_toml_and_json_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = 1\n[b]\nc = 0.5\n")
    (tmp_path / "a.json").write_text('{"a": 1, "b": {"c": 0.5}}')
    assert read_table(tmp_path / "a.toml") == read_table(tmp_path / "a.json") == {"a": 1, "b": {"c": 0.5}}
