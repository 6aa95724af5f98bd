from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gradveil import data
from gradveil.data import tiny_imagenet
from gradveil.data.base import silent
from gradveil.errors import DataError
from tests.data.official_files import encoded, picture, write_folder, write_zip

IDS = ("n02124075", "n01443537", "n04067472")  # wnids.txt is not sorted
PER_CLASS = 12


def contents() -> dict[str, bytes]:
    members = {
        "wnids.txt": "\n".join(IDS).encode() + b"\n",
        "words.txt": b"n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\nn02124075\tEgyptian cat\n",
        "test/images/test_0.JPEG": b"never read",
    }
    for row, identifier in enumerate(IDS):
        members[f"train/{identifier}/{identifier}_boxes.txt"] = b""
        for number in range(PER_CLASS):
            name = f"train/{identifier}/images/{identifier}_{number}.JPEG"
            members[name] = encoded(picture(64, 64, 3, seed=100 * row + number), "JPEG")
    members["train/n02124075/images/n02124075_3.JPEG"] = encoded(picture(64, 64, seed=7), "JPEG")
    lines = [f"val_{number}.JPEG\t{IDS[number % 3]}\t0\t32\t44\t62" for number in range(6)]
    members["val/val_annotations.txt"] = "\n".join(lines).encode() + b"\n"
    for number in range(6):
        members[f"val/images/val_{number}.JPEG"] = encoded(picture(64, 64, 3, seed=1000 + number), "JPEG")
    return members


def write(root: Path, packed: bool, members: dict[str, bytes]) -> Path:
    if packed:
        path = root / "tiny-imagenet-200.zip"
        write_zip(path, {f"tiny-imagenet-200/{name}": content for name, content in members.items()})
        return path
    write_folder(root / "tiny-imagenet-200", members)
    return root / "tiny-imagenet-200"


@pytest.mark.parametrize("packed", [True, False])
def test_the_tree_and_the_zip_are_read(packed: bool, tmp_path: Path) -> None:
    dataset = tiny_imagenet.read(write(tmp_path, packed, contents()), silent)
    assert dataset.shape == (3, 64, 64)
    assert dataset.class_names == ("goldfish, Carassius auratus", "Egyptian cat", "n04067472")
    assert dataset.train.labels.tolist() == [0] * PER_CLASS + [1] * PER_CLASS + [2] * PER_CLASS
    assert dataset.test.labels.tolist() == [1, 0, 2, 1, 0, 2]


def test_images_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    members = contents()
    dataset = tiny_imagenet.read(write(tmp_path, True, members), silent)
    (tmp_path / "x.JPEG").write_bytes(members["train/n01443537/images/n01443537_10.JPEG"])
    expected = np.asarray(Image.open(tmp_path / "x.JPEG")).transpose(2, 0, 1)
    assert np.array_equal(dataset.train.images[10].numpy(), expected)


def test_a_grey_image_among_coloured_ones_is_repeated(tmp_path: Path) -> None:
    dataset = tiny_imagenet.read(write(tmp_path, True, contents()), silent)
    red, green, blue = dataset.train.images[PER_CLASS + 3]
    assert torch.equal(red, green)
    assert torch.equal(red, blue)


@pytest.mark.parametrize("packed", [True, False])
def test_it_is_found_packed_and_unpacked(packed: bool, tmp_path: Path) -> None:
    path = write(tmp_path, packed, contents())
    assert tiny_imagenet.find(tmp_path) == path
    with pytest.raises(DataError, match="36 training and 6 test images, the official ones 100,000 and 10,000"):
        data.load("tiny-imagenet", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val/val_annotations.txt": b"val_0.JPEG\tn99999999\t0"}, "line 1 is 'val_0.JPEG"),
        ({"val/val_annotations.txt": b"val_0.JPEG n01443537"}, "must be a file, a tab and an id"),
        ({"val/val_annotations.txt": b"../../x.JPEG\tn01443537\t0"}, "must be a file, a tab and an id"),
        ({"val/images/val_2.JPEG": b"\xff\xd8\xff no picture"}, r"val_2.JPEG cannot be decoded"),
        ({"wnids.txt": "\n".join((*IDS, "n07777777")).encode()}, "no training image of 1 of its 4 classes"),
        ({"wnids.txt": b"n01443537\n", "val/val_annotations.txt": b"val_1.JPEG\tn01443537\t0"}, "1 class"),
        ({"wnids.txt": b"\xff\xfe\xfa"}, "must be a file, a tab and an id"),
    ],
)
def test_a_tree_that_is_not_what_it_should_be(change: dict[str, bytes], message: str, tmp_path: Path) -> None:
    path = write(tmp_path, True, contents() | change)
    with pytest.raises(DataError, match=message):
        tiny_imagenet.read(path, silent)


@pytest.mark.parametrize("name", ["wnids.txt", "words.txt", "val/val_annotations.txt", "val/images/val_3.JPEG"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_is_missing_is_named(packed: bool, name: str, tmp_path: Path) -> None:
    members = contents()
    del members[name]
    with pytest.raises(DataError, match=name.rpartition(".")[0]):
        tiny_imagenet.read(write(tmp_path, packed, members), silent)
