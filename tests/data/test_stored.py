"""Policies on stored images."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from gradveil.data.base import silent
from gradveil.data.stored import plan_targets, transform_stored
from gradveil.errors import DataError, OutputError
from gradveil.rng import generator
from gradveil.transforms import parse_policy
from tests.data.official_files import random_pixels, write_idx

INVERT = parse_policy("0")


def test_a_folder_becomes_png_files(tmp_path: Path) -> None:
    pixels = random_pixels(9, 8, 3)
    (tmp_path / "in" / "cats").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "in" / "cats" / "a.bmp")
    (tmp_path / "in" / "notes.txt").write_text("not an image")
    seen: list[tuple[str, int, int]] = []
    counts = transform_stored(tmp_path / "in", tmp_path / "out", INVERT, 0, False, lambda *report: seen.append(report))
    assert counts == {"images": 1, "other_files": 1}
    assert seen == [("transforming images", 1, 1)]
    with Image.open(tmp_path / "out" / "cats" / "a.png") as image:
        assert np.array_equal(np.asarray(image), 255 - pixels)


def test_a_copy_can_be_read_by_those_who_can_read_the_original(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, mode in (("a.png", 0o600), ("b.png", 0o640)):
        Image.fromarray(random_pixels(9, 8, 3)).save(tmp_path / "in" / name)
        (tmp_path / "in" / name).chmod(mode)
    transform_stored(tmp_path / "in", tmp_path / "out", INVERT, 0, False, silent)
    assert [(tmp_path / "out" / name).stat().st_mode & 0o777 for name in ("a.png", "b.png")] == [0o600, 0o640]
    np.savez(tmp_path / "in.npz", images=random_pixels(2, 8, 8))
    (tmp_path / "in.npz").chmod(0o600)
    transform_stored(tmp_path / "in.npz", tmp_path / "out.npz", INVERT, 0, False, silent)
    assert (tmp_path / "out.npz").stat().st_mode & 0o777 == 0o600


def test_the_draw_of_an_image_depends_on_the_seed_and_its_name(tmp_path: Path) -> None:
    policies = parse_policy("3-1-7+43-18-18")
    pixels = random_pixels(12, 12)
    (tmp_path / "in").mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(pixels).save(tmp_path / "in" / name)
    transform_stored(tmp_path / "in", tmp_path / "out", policies, 5, False, silent)
    for name in ("a.png", "b.png"):
        expected = policies.transform(torch.from_numpy(pixels)[None, None], generator(5, "offline", name))
        with Image.open(tmp_path / "out" / name) as image:
            assert np.array_equal(np.asarray(image), expected[0, 0].numpy())


def test_npz_keeps_its_form(tmp_path: Path) -> None:
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    arrays: dict[str, NDArray[Any]] = {
        "train_images": random_pixels(6, 8, 9),
        "test_images": random_pixels(4, 8, 9, 3),
        "other_images": random_pixels(4, 3, 8, 9),
        "labels": np.arange(6),
    }
    np.savez(source, allow_pickle=False, **arrays)
    assert transform_stored(source, target, INVERT, 0, False, silent) == {"images": 14}
    with np.load(target, allow_pickle=False) as written:
        assert set(written.files) == set(arrays)
        for name in ("train_images", "test_images", "other_images"):
            assert np.array_equal(written[name], 255 - arrays[name])
        assert np.array_equal(written["labels"], arrays["labels"])


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_keeps_its_form(tmp_path: Path, suffix: str) -> None:
    images = random_pixels(5, 7, 6)
    source, target = tmp_path / "train-images-idx3-ubyte", tmp_path / f"out-idx3-ubyte{suffix}"
    write_idx(source, images)
    assert transform_stored(source, target, INVERT, 0, False, silent) == {"images": 5}
    content = gzip.decompress(target.read_bytes()) if suffix else target.read_bytes()
    assert content == bytes([0, 0, 8, 3]) + struct.pack(">3I", 5, 7, 6) + (255 - images).tobytes()


def test_the_seed_decides_the_result(tmp_path: Path) -> None:
    source = tmp_path / "in.npz"
    np.savez(source, images=random_pixels(20, 8, 8))
    written = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        transform_stored(source, tmp_path / f"{name}.npz", parse_policy("3-1-7"), seed, False, silent)
        with np.load(tmp_path / f"{name}.npz") as arrays:
            written.append(arrays["images"])
    assert np.array_equal(written[0], written[1])
    assert not np.array_equal(written[0], written[2])


def test_a_file_never_overwrites_its_source(tmp_path: Path) -> None:
    source = tmp_path / "in.npz"
    np.savez(source, images=random_pixels(2, 4, 4))
    with pytest.raises(OutputError, match="exists already"):
        transform_stored(source, source, INVERT, 0, True, silent)
    with pytest.raises(DataError, match="does not exist"):
        transform_stored(tmp_path / "nothing", tmp_path / "out", INVERT, 0, False, silent)


def test_two_images_cannot_get_one_name() -> None:
    pictures = [Path("in/a.bmp"), Path("in/a.png")]
    with pytest.raises(DataError, match=r"a\.bmp and in/a\.png would both become a\.png"):
        plan_targets(Path("in"), Path("out"), pictures)
    assert plan_targets(Path("in"), Path("out"), pictures[:1]) == {Path("in/a.bmp"): Path("out/a.png")}
