import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gradveil import data
from gradveil.data.folder import files_in
from gradveil.errors import DataError, InputError
from tests.data.official_files import encoded, picture


def write_images(folder: Path, classes: dict[str, int], shape: tuple[int, ...] = (16, 16, 3)) -> None:
    for row, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            picture(*shape, seed=100 * row + number).save(folder / name / f"{number}.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_images(tmp_path / "pets", {"cat": 10, "dog": 5})
    return tmp_path / "pets"


def test_class_folders_are_split_by_the_seed_in_each_class(folder: Path) -> None:
    dataset = data.load(f"folder:{folder}")
    assert dataset.class_names == ("cat", "dog")
    assert dataset.shape == (3, 16, 16)
    assert torch.bincount(dataset.train.labels).tolist() == [8, 4]
    assert torch.bincount(dataset.test.labels).tolist() == [2, 1]
    again, other = data.load(f"folder:{folder}"), data.load(f"folder:{folder},seed=1")
    assert torch.equal(dataset.test.images, again.test.images)
    assert not torch.equal(dataset.test.images, other.test.images)


def test_every_image_is_in_one_split(folder: Path) -> None:
    dataset = data.load(f"folder:{folder},test-fraction=0.5")
    assert (len(dataset.train), len(dataset.test)) == (8, 7)
    written = {np.asarray(Image.open(path)).transpose(2, 0, 1).tobytes() for path in folder.rglob("*.png")}
    loaded = [image.numpy().tobytes() for split in (dataset.train, dataset.test) for image in split.images]
    assert len(loaded) == 15
    assert set(loaded) == written


@pytest.mark.parametrize("name", ["test", "val", "validation"])
def test_folders_of_splits_are_taken_as_they_are(name: str, tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"cat": 3, "dog": 4})
    write_images(tmp_path / name, {"dog": 2})
    dataset = data.load(f"folder:{tmp_path}")
    assert dataset.train.labels.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert dataset.test.labels.tolist() == [1, 1]
    with pytest.raises(InputError, match="the option seed has no effect, because"):
        data.load(f"folder:{tmp_path},seed=1")


def test_train_can_be_a_class(tmp_path: Path) -> None:
    write_images(tmp_path, {"bus": 2, "train": 2})
    assert data.load(f"folder:{tmp_path}").class_names == ("bus", "train")


def test_a_test_split_with_an_unknown_class_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"cat": 3, "dog": 4})
    write_images(tmp_path / "test", {"cat": 2, "cow": 2})
    with pytest.raises(DataError, match=r"classes that are not in .*: cow"):
        data.load(f"folder:{tmp_path}")


def test_images_are_resized_as_asked(folder: Path) -> None:
    assert data.load(f"folder:{folder},size=32").shape == (3, 32, 32)
    assert data.load(f"folder:{folder},size=32,channels=1").shape == (1, 32, 32)


def test_mixed_kinds_of_images_come_out_alike(folder: Path) -> None:
    picture(40, 30).save(folder / "cat" / "grey.jpg")
    picture(20, 20, 3).convert("RGBA").save(folder / "cat" / "alpha.png")
    picture(20, 20, 3).convert("CMYK").save(folder / "dog" / "print.tiff")
    picture(20, 20, 3).quantize(8).save(folder / "dog" / "palette.gif")
    dataset = data.load(f"folder:{folder}")
    assert dataset.shape == (3, 64, 64)
    assert len(dataset.train) + len(dataset.test) == 19


def test_a_broken_image_is_named_or_skipped_and_counted(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / "dog" / "3.png"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"dog/3\.png cannot be decoded"):
        data.load(f"folder:{folder}")
    with caplog.at_level(logging.WARNING):
        dataset = data.load(f"folder:{folder},skip-broken")
    assert dataset.skipped == (str(path),)
    assert len(dataset.train) + len(dataset.test) == 14
    assert "left out 1 of 15 images" in caplog.text


def test_a_broken_image_keeps_the_labels_of_the_others_in_place(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_images(tmp_path / split, {"cat": 3, "dog": 3})
        (tmp_path / split / "cat" / "1.png").write_bytes(b"x")
    dataset = data.load(f"folder:{tmp_path},skip-broken")
    assert dataset.train.labels.tolist() == dataset.test.labels.tolist() == [0, 0, 1, 1, 1]


def test_an_empty_class_is_named(folder: Path) -> None:
    (folder / "cow").mkdir()
    with pytest.raises(DataError, match=r"no training image of 1 of its 3 classes \(cow\)"):
        data.load(f"folder:{folder}")


def test_one_class_is_refused(folder: Path) -> None:
    shutil.rmtree(folder / "dog")
    with pytest.raises(DataError, match="at least two are needed"):
        data.load(f"folder:{folder}")


def test_a_class_whose_images_are_all_broken_counts_as_empty(folder: Path) -> None:
    for path in (folder / "dog").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"\(dog\)"):
        data.load(f"folder:{folder},skip-broken")


def test_a_folder_without_images_or_without_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder with images"):
        data.load(f"folder:{tmp_path}")
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    with pytest.raises(DataError, match="no folder with images"):
        data.load(f"folder:{tmp_path}")


def test_a_single_image_of_a_class_is_for_training(tmp_path: Path) -> None:
    write_images(tmp_path, {"cat": 4, "dog": 1})
    dataset = data.load(f"folder:{tmp_path}")
    assert (dataset.train.labels == 1).sum() == 1
    assert dataset.test.labels.tolist() == [0]


def test_hidden_files_are_no_images_and_numbers_count(tmp_path: Path) -> None:
    for name in ("10.png", "9.png", ".DS_Store", "sub/1.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encoded(picture(4, 4)))
    assert [path.name for path in files_in(tmp_path)] == ["9.png", "10.png", "1.png"]


@pytest.mark.parametrize("text", ["", "/no/such/place", "{}/cat/0.png"])
def test_what_is_no_folder_is_said(text: str, folder: Path) -> None:
    with pytest.raises(DataError, match="is no folder: write folder:PATH"):
        data.load(f"folder:{text.format(folder)}")


def test_a_comma_may_be_in_the_path(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder, tmp_path / "pets, small")
    assert data.load(f"folder:{tmp_path}/pets, small,size=8").shape == (3, 8, 8)
