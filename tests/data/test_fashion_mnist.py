import gzip
import hashlib
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import fashion_mnist
from gradveil.errors import DataError
from tests.data.official_files import random_pixels, write_idx

TRAIN, TEST = 30, 10
SHAPES = {
    "train-images-idx3-ubyte": (TRAIN, 28, 28),
    "train-labels-idx1-ubyte": (TRAIN,),
    "t10k-images-idx3-ubyte": (TEST, 28, 28),
    "t10k-labels-idx1-ubyte": (TEST,),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small data set in the official form, and let it count as the official one."""
    monkeypatch.setattr(fashion_mnist, "DEBIAN", tmp_path / "no package")
    for name, shape in SHAPES.items():
        values = random_pixels(*shape) if len(shape) == 3 else (torch.arange(shape[0]) % 10).byte().numpy()
        write_idx(tmp_path / f"{name}.gz", values)
    hashes = {name: hashlib.sha256(unpack(tmp_path, name)).hexdigest() for name in SHAPES}
    monkeypatch.setattr(fashion_mnist, "CONTENT_SHA256", hashes)
    return tmp_path


def unpack(folder: Path, name: str) -> bytes:
    return gzip.decompress((folder / f"{name}.gz").read_bytes())


def test_the_idx_files_are_read(folder: Path) -> None:
    dataset = data.load("fashion-mnist", folder)
    assert dataset.shape == (1, 28, 28)
    assert torch.equal(dataset.train.images[:, 0], torch.from_numpy(random_pixels(TRAIN, 28, 28)))
    assert dataset.test.labels.tolist() == list(range(10))
    assert dataset.class_names[9] == "Ankle boot"


def test_raw_files_give_the_same_as_compressed_ones(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    raw = tmp_path_factory.mktemp("raw")
    for name in SHAPES:
        (raw / name).write_bytes(unpack(folder, name))
    one, two = data.load("fashion-mnist", folder), data.load("fashion-mnist", raw)
    assert torch.equal(one.train.images, two.train.images)
    assert (one.mean, one.std) == (two.mean, two.std)


def test_the_package_of_debian_is_found(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADVEIL_DATA", str(tmp_path / "elsewhere"))
    assert fashion_mnist.find(None) is None
    monkeypatch.setattr(fashion_mnist, "DEBIAN", folder)
    assert fashion_mnist.find(None) == folder


def test_a_folder_with_some_of_the_files_is_not_taken(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match=r"fashion-mnist is not on this machine: no complete set of idx files"):
        data.load("fashion-mnist", folder)


def test_mnist_under_the_same_names_is_refused(folder: Path) -> None:
    write_idx(folder / "train-images-idx3-ubyte.gz", random_pixels(TRAIN, 28, 28, seed=1))
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is whole but is not the file of Fashion-MNIST"):
        data.load("fashion-mnist", folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: gzip.compress(content[:-1]), r"23,519 values, its header says 23,520"),
        (lambda content: gzip.compress(content + b"x"), r"23,521 values, its header says 23,520"),
        (lambda content: gzip.compress(content)[:-100], r"cannot be read .* cut off"),
        (lambda content: gzip.compress(content[:10]), "does not start like an idx file"),
        (lambda content: gzip.compress(b"\x00\x00\x0d\x03" + content[4:]), "does not start like an idx file"),
        (lambda _: b"", "does not start like an idx file"),
        (lambda content: gzip.compress(content[:4] + b"\xff" * 12 + content[16:]), "its header says"),
        (lambda _: gzip.compress(bytes(60_000_000)), "holds more than"),
    ],
)
def test_damaged_files_are_one_clear_error(change: object, message: str, folder: Path) -> None:
    path = folder / "train-images-idx3-ubyte.gz"
    assert callable(change)
    path.write_bytes(change(gzip.decompress(path.read_bytes())))
    with pytest.raises(DataError, match=message):
        data.load("fashion-mnist", folder)


def test_as_many_labels_as_images(folder: Path) -> None:
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", random_pixels(TEST - 1))
    with pytest.raises(DataError, match="labels are"):
        fashion_mnist.read(folder, {})
