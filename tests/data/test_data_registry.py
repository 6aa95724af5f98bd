from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data.places import data_root
from gradveil.data.summary import summarise
from gradveil.errors import DataError, UnknownNameError


def test_the_sample_loads_from_anywhere(tmp_path: Path) -> None:
    sample = data.load("fashion-mnist-sample")
    assert (len(sample.train), len(sample.test), sample.shape, sample.classes) == (5000, 1000, (1, 28, 28), 10)
    assert torch.equal(sample.test.images, data.load("fashion-mnist-sample", tmp_path).test.images)


def test_the_sample_is_balanced_and_its_splits_are_apart() -> None:
    summary = summarise(data.load("fashion-mnist-sample"))
    assert summary.train_per_class == (500,) * 10
    assert summary.test_per_class == (100,) * 10
    assert summary.test_images_in_train == 0


def test_copies_across_the_splits_are_counted() -> None:
    sample = data.load("fashion-mnist-sample")
    sample.test.images[:3] = sample.train.images[[7, 7, 4000]]
    assert summarise(sample).test_images_in_train == 3


@pytest.mark.parametrize("name", ["fashion-mnsit", "", "folder", "zip:/tmp/x"])
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
    found = source.find(tmp_path)
    assert found is not None
    assert found.is_relative_to(tmp_path / name)


def test_downloads_go_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GRADVEIL_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_root() == tmp_path / ".cache/gradveil/data"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root() == tmp_path / "cache/gradveil/data"
    monkeypatch.setenv("GRADVEIL_DATA", "~/sets")
    assert data_root() == tmp_path / "sets"
