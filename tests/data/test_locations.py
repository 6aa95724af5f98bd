"""Where data sets are searched."""

from pathlib import Path

import pytest

from gradveil.data.locations import data_root, list_folders, make_missing_error
from gradveil.errors import DataError


def test_downloads_go_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GRADVEIL_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_root() == tmp_path / ".cache/gradveil/data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache/gradveil/data"
    monkeypatch.setenv("GRADVEIL_DATA", "~/sets")
    assert data_root() == tmp_path / "sets"


def test_folders_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADVEIL_DATA", str(tmp_path))
    system = Path("/usr/share/sets")
    assert list_folders("cifar10", None, system) == [tmp_path / "cifar10", tmp_path, system]
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    assert list_folders("cifar10", chosen, system) == [chosen / "cifar10", chosen]
    with pytest.raises(DataError, match="is no folder: --root needs the folder that holds the files of cifar10"):
        list_folders("cifar10", tmp_path / "nowhere")


def test_the_error_says_where_and_what_to_do() -> None:
    error = make_missing_error("cifar10", "archive", [Path("/a"), Path("/b")])
    assert str(error) == (
        "cifar10 is not on this machine: no archive in /a or /b; run 'gradveil data get cifar10', or set "
        "GRADVEIL_DATA to the folder that holds it"
    )
