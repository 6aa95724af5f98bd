"""matplotlib writes nothing to a home folder that it has not used before."""

import os
from pathlib import Path

import pytest

from gradveil.reports.home import SETTING, keep_out_of_home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", SETTING):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_an_empty_home_is_left_alone(home: Path) -> None:
    keep_out_of_home()
    assert Path(os.environ[SETTING]).is_dir()
    assert home not in Path(os.environ[SETTING]).parents


@pytest.mark.parametrize("name", [".cache/matplotlib", ".config/matplotlib"])
def test_a_place_that_matplotlib_has_stays(home: Path, name: str) -> None:
    (home / name).mkdir(parents=True)
    keep_out_of_home()
    assert os.environ[SETTING] == ""


def test_a_setting_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "/somewhere")
    keep_out_of_home()
    assert os.environ[SETTING] == "/somewhere"
