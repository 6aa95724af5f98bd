import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gradveil import data
from gradveil.errors import DataError, InputError, SettingsError
from tests.data.official_files import encoded, picture, random_pixels

NAMES = np.array(["ant", "bee", "cow"])


def save(path: Path, **arrays: NDArray[Any]) -> Path:
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    return path


def save_images(path: Path, count: int = 9, seed: int = 0, **more: NDArray[Any]) -> Path:
    return save(path, images=random_pixels(count, 8, 8, 3, seed=seed), labels=np.arange(count) % 3, **more)


def save_jpeg(path: Path, images: list[bytes], **more: NDArray[Any]) -> Path:
    offsets = np.cumsum([0, *map(len, images)])
    labels = np.arange(len(images)) % 3
    return save(path, jpeg=np.frombuffer(b"".join(images), np.uint8), offsets=offsets, labels=labels, **more)


def test_several_files_make_one_split_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2):
        save_images(tmp_path / f"train_{number}.npz", seed=number, class_names=NAMES)
    save_images(tmp_path / "test.npz", count=4, seed=99)
    dataset = data.load(f"npz:{tmp_path}/train_*.npz,{tmp_path}/test.npz")
    expected = np.concatenate([random_pixels(9, 8, 8, 3, seed=number) for number in (2, 10)])
    assert torch.equal(dataset.train.images, torch.from_numpy(expected.transpose(0, 3, 1, 2).copy()))
    assert dataset.train.labels.tolist() == [0, 1, 2] * 6
    assert len(dataset.test) == 4
    assert dataset.class_names == ("ant", "bee", "cow")


def test_one_split_is_parted_by_the_seed(tmp_path: Path) -> None:
    path = save_images(tmp_path / "all.npz", count=30)
    dataset = data.load(f"npz:{path}")
    assert torch.bincount(dataset.test.labels).tolist() == [2, 2, 2]
    assert dataset.class_names == ("0", "1", "2")
    assert torch.equal(dataset.test.images, data.load(f"npz:{path},seed=0").test.images)
    assert not torch.equal(dataset.test.images, data.load(f"npz:{path},seed=1").test.images)
    assert len(data.load(f"npz:{path},test-fraction=0.5").test) == 15


def test_both_splits_may_be_in_one_file(tmp_path: Path) -> None:
    path = save(
        tmp_path / "both.npz",
        train_images=random_pixels(6, 28, 28),
        train_labels=(np.arange(6) % 2)[:, None].astype(np.uint8),
        test_images=random_pixels(4, 28, 28, seed=1),
        test_labels=np.array([0, 1, 0, 1]),
    )
    dataset = data.load(f"npz:{path}")
    assert dataset.shape == (1, 28, 28)
    assert dataset.train.labels.tolist() == [0, 1] * 3
    assert torch.equal(dataset.test.images[:, 0], torch.from_numpy(random_pixels(4, 28, 28, seed=1)))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((6, 8, 10), (1, 8, 10)),
        ((6, 8, 10, 1), (1, 8, 10)),
        ((6, 8, 10, 3), (3, 8, 10)),
        ((6, 3, 8, 10), (3, 8, 10)),
        ((6, 1, 8, 10), (1, 8, 10)),
    ],
)
def test_the_usual_orders_of_axes_are_understood(
    shape: tuple[int, ...], expected: tuple[int, ...], tmp_path: Path
) -> None:
    path = save(tmp_path / "a.npz", images=random_pixels(*shape), labels=np.arange(6) % 2)
    assert data.load(f"npz:{path}").shape == expected


def test_jpeg_bytes_are_decoded_grey_ones_among_them(tmp_path: Path) -> None:
    images = [encoded(picture(16, 16, 3, seed=seed), "JPEG") for seed in range(8)]
    images[4] = encoded(picture(16, 16), "JPEG")
    path = save_jpeg(tmp_path / "a.npz", images, class_names=NAMES.astype(bytes), files=np.array(["x"] * 8))
    test = save_jpeg(tmp_path / "b.npz", images[:3])
    dataset = data.load(f"npz:{path},{test}")
    assert dataset.shape == (3, 16, 16)
    assert dataset.class_names == ("ant", "bee", "cow")
    assert torch.equal(dataset.train.images[:3], dataset.test.images)
    assert torch.equal(dataset.train.images[4, 0], dataset.train.images[4, 2])
    assert data.load(f"npz:{path},{test},size=8,channels=1").shape == (1, 8, 8)


def test_a_broken_jpeg_is_named_or_skipped_and_counted(tmp_path: Path) -> None:
    images = [encoded(picture(16, 16, 3, seed=seed), "JPEG") for seed in range(9)]
    images[1] = images[1][:50]
    path, test = save_jpeg(tmp_path / "a.npz", images), save_jpeg(tmp_path / "b.npz", images)
    with pytest.raises(DataError, match=r"a\.npz: image 1 cannot be decoded"):
        data.load(f"npz:{path},{test}")
    dataset = data.load(f"npz:{path},{test},skip-broken")
    assert len(dataset.train) == len(dataset.test) == 8
    assert dataset.train.labels.tolist() == [0, 2, 0, 1, 2, 0, 1, 2]
    assert dataset.skipped == (f"{path}: image 1", f"{test}: image 1")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": random_pixels(4, 8, 8, 3)}, "has the arrays images but not 'labels'"),
        ({"labels": np.arange(4)}, "but not 'images'"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.arange(5)}, "4 images and 5 labels"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.ones(4)}, "must be N whole numbers"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.array([0, 1, -1, 1])}, "labels from -1 to 1"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.array([0, 1, 1, 10**12])}, "number the classes from 0"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.array([0, 1, 3, 3])}, r"1 of its 4 classes \(2\)"),
        ({"images": random_pixels(4, 8, 8, 3), "labels": np.zeros(4, int)}, "at least two"),
        ({"images": np.zeros((4, 8, 8, 3)), "labels": np.arange(4)}, "they must be uint8"),
        ({"images": random_pixels(4, 8, 8, 4), "labels": np.arange(4)}, "with 1 or 3 channels"),
        ({"images": random_pixels(4, 64), "labels": np.arange(4)}, "with 1 or 3 channels"),
        ({"images": random_pixels(0, 8, 8), "labels": np.arange(0)}, "class"),
        ({"jpeg": random_pixels(9), "labels": np.arange(2)}, "but not 'offsets'"),
        ({"jpeg": random_pixels(9), "offsets": np.array([0, 5, 10]), "labels": np.arange(2)}, "do not rise"),
        ({"jpeg": random_pixels(9), "offsets": np.array([0, 5, 4]), "labels": np.arange(2)}, "do not rise"),
        ({"jpeg": random_pixels(9), "offsets": np.array([-1, 5, 9]), "labels": np.arange(2)}, "do not rise"),
        ({"jpeg": random_pixels(9), "offsets": np.array([0.0, 5.0]), "labels": np.arange(2)}, "N\\+1 positions"),
        (
            {"images": random_pixels(4, 8, 8, 3), "labels": np.arange(4), "class_names": np.arange(4)},
            "must be a row of texts",
        ),
        (
            {"images": random_pixels(8, 8, 8, 3), "labels": np.arange(8) % 4, "class_names": NAMES},
            "labels from 0 to 3",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_one_clear_error(
    arrays: dict[str, NDArray[Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        data.load(f"npz:{save(tmp_path / 'a.npz', **arrays)}")


def test_python_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npz", images=np.array([{}, []], dtype=object), labels=np.arange(2))
    with pytest.raises(DataError, match=r"damaged array 'images' .*it holds Python objects"):
        data.load(f"npz:{path}")


def write_member(path: Path, header: str, content: bytes) -> Path:
    """Write labels and an `images` whose header says what it likes."""
    stream = io.BytesIO()
    np.save(stream, np.arange(4))
    text = header.ljust(117).encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", stream.getvalue())
        archive.writestr("images.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
    return path


@pytest.mark.parametrize(
    ("header", "content"),
    [
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 99999999, 9999999, 3)}", b""),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 8, 8)}", bytes(255)),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 8, 8)}", bytes(257)),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (-4, 8, 8)}", bytes(256)),
        ("__import__('os').system('true')", bytes(256)),
        ("{", b""),
    ],
)
def test_a_header_that_lies_is_one_clear_error(header: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged array 'images'"):
        data.load(f"npz:{write_member(tmp_path / 'a.npz', header, content)}")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_a_cut_file_is_one_clear_error(share: float, tmp_path: Path) -> None:
    path = save_images(tmp_path / "a.npz")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match="damaged or cut off"):
        data.load(f"npz:{path}")


def test_a_flipped_byte_fails_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, images=random_pixels(9, 8, 8, 3), labels=np.arange(9) % 3)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="CRC"):
        data.load(f"npz:{path}")


def test_files_of_one_data_set_must_agree(tmp_path: Path) -> None:
    one = save_images(tmp_path / "a.npz", class_names=NAMES)
    two = save_images(tmp_path / "b.npz", class_names=NAMES[::-1])
    with pytest.raises(DataError, match="different class_names"):
        data.load(f"npz:{one},{two}")
    save(two, images=random_pixels(9, 9, 9, 3), labels=np.arange(9) % 3)
    with pytest.raises(DataError, match=r"shapes \[\(3, 8, 8\), \(3, 9, 9\)\]: all files"):
        data.load(f"npz:{one},{two}")
    save_jpeg(two, [encoded(picture(8, 8, 3), "JPEG")] * 3)
    with pytest.raises(DataError, match=r"shapes \[\(3, 8, 8\)\] and JPEG bytes"):
        data.load(f"npz:{one},{two}")


def test_options_that_would_do_nothing_are_refused(tmp_path: Path) -> None:
    path, test = save_images(tmp_path / "a.npz"), save_images(tmp_path / "b.npz")
    with pytest.raises(SettingsError, match="size has no effect"):
        data.load(f"npz:{path},size=16")
    with pytest.raises(SettingsError, match="test-fraction has no effect"):
        data.load(f"npz:{path},{test},test-fraction=0.5")


def test_paths_that_lead_nowhere_or_twice_to_one_place(tmp_path: Path) -> None:
    path = save_images(tmp_path / "a.npz")
    for text, message in (
        ("", "no file matches"),
        (f"{tmp_path}/b*.npz", "no file matches"),
        (str(tmp_path), "no file matches"),
        (f"{path},{path}", "in both the training and the test split"),
        (f"{path},{path},{path}", "got 3 paths"),
    ):
        with pytest.raises(InputError, match=message):
            data.load(f"npz:{text}")


def test_a_name_with_brackets_is_a_name_before_it_is_a_glob(tmp_path: Path) -> None:
    path = save_images(tmp_path / "a[1].npz")
    assert len(data.load(f"npz:{path}").train) == 6
