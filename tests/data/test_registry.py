"""Data sets by name."""

from pathlib import Path

import pytest

from gradveil import data
from gradveil.errors import DataError, UnknownNameError


@pytest.mark.parametrize("name", ["fashion-mnsit", "", "folder", "zip:x"])
def test_an_unknown_name_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"choose from cifar10, .*folder:PATH, npz:PATH"):
        data.load(name)


@pytest.mark.parametrize("name", ["fashion-mnist-sample", "folder:/tmp", "npz:x"])
def test_there_is_not_always_something_to_download(name: str) -> None:
    with pytest.raises(DataError, match="nothing to download"):
        data.get(name)


@pytest.mark.parametrize("name", [name for name, source in data.DATASETS.items() if source.files])
def test_what_is_downloaded_is_what_is_looked_for(name: str, tmp_path: Path) -> None:
    source = data.DATASETS[name]
    (tmp_path / name).mkdir()
    assert source.find(tmp_path) is None
    for file in source.files:
        assert file.url.endswith(file.name)
        assert len(file.sha256) == 64
        (tmp_path / name / file.name).touch()
    path = source.find(tmp_path)
    assert path is not None
    assert path.is_relative_to(tmp_path / name)


def test_the_path_of_a_persons_own_is_told_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "images.npz").touch()
    monkeypatch.chdir(tmp_path)
    for name, form in (("photos", "folder:photos"), ("images.npz", "npz:images.npz")):
        with pytest.raises(DataError, match=f"write {form}$"):
            data.load(name)
