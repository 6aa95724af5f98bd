import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gradveil import data
from gradveil.data import cifar
from gradveil.data.cifar import CIFAR10, CIFAR100, Form
from gradveil.errors import DataError
from tests.data.official_files import python2_pickle, random_pixels, write_folder, write_tar

BINARY10, PYTHON10 = CIFAR10.forms
BINARY100, PYTHON100 = CIFAR100.forms
FORMS = [PYTHON10, BINARY10, PYTHON100, BINARY100]
NAMES = {True: tuple(f"thing_{number}" for number in range(100)), False: ("plane", "car", "bird")}
PER_FILE = {True: 200, False: 6}


def is_hundred(form: Form) -> bool:
    return "100" in form.archive


def contents(form: Form, count: int) -> dict[str, bytes]:
    """Make the files of one form, with the same images and labels in both forms of a data set."""
    names = NAMES[is_hundred(form)]
    members = {}
    for number, file in enumerate((*form.train, *form.test)):
        pixels = random_pixels(count, 3072, seed=number)
        labels = [label % len(names) for label in range(number, number + count)]
        members[file] = pack(form, pixels, labels)
    members[form.class_names] = pack_names(form, list(names))
    return members


def pack(form: Form, pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], labels: list[int]) -> bytes:
    if form.archive.endswith("binary.tar.gz"):
        coarse = [[label // 5] for label in labels] if is_hundred(form) else [[] for _ in labels]
        return b"".join(
            bytes([*c, label]) + row.tobytes() for c, label, row in zip(coarse, labels, pixels, strict=True)
        )
    key = "fine_labels" if is_hundred(form) else "labels"
    record = {"batch_label": "one of them", key: labels, "data": pixels, "filenames": ["a.png"] * len(labels)}
    if is_hundred(form):
        record["coarse_labels"] = [label // 5 for label in labels]
    return python2_pickle(record)


def pack_names(form: Form, names: list[str]) -> bytes:
    if form.archive.endswith("binary.tar.gz"):
        return ("\n".join(names) + "\n\n").encode()
    key = "fine_label_names" if is_hundred(form) else "label_names"
    return python2_pickle({key: names, "num_vis": 3072})


def write(form: Form, root: Path, packed: bool, members: dict[str, bytes]) -> Path:
    if packed:
        write_tar(root / form.archive, {f"{form.folder}/{name}": content for name, content in members.items()})
        return root / form.archive
    write_folder(root / form.folder, members)
    return root / form.folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.archive)
def test_each_form_is_read_whole_and_in_order(form: Form, packed: bool, tmp_path: Path) -> None:
    count, names = PER_FILE[is_hundred(form)], NAMES[is_hundred(form)]
    path = write(form, tmp_path, packed, contents(form, count))
    dataset = cifar.read("cifar", form, path)
    assert len(dataset.train) == count * len(form.train)
    assert len(dataset.test) == count
    assert dataset.class_names == names
    first_of_test = random_pixels(count, 3072, seed=len(form.train)).reshape(-1, 3, 32, 32)
    assert torch.equal(dataset.test.images, torch.from_numpy(first_of_test))
    assert dataset.train.labels[:4].tolist() == [0, 1, 2, 3 % len(names)]
    assert dataset.test.labels[0] == len(form.train) % len(names)


@pytest.mark.parametrize(("python", "binary"), [FORMS[:2], FORMS[2:]])
def test_both_forms_give_the_same_data_set(python: Form, binary: Form, tmp_path: Path) -> None:
    count = PER_FILE[is_hundred(python)]
    one, two = (
        cifar.read("cifar", form, write(form, tmp_path, True, contents(form, count))) for form in (python, binary)
    )
    for left, right in ((one.train, two.train), (one.test, two.test)):
        assert torch.equal(left.images, right.images)
        assert torch.equal(left.labels, right.labels)
    assert (one.mean, one.std, one.class_names) == (two.mean, two.std, two.class_names)


@pytest.mark.parametrize("place", ["", "cifar100", "cifar100/cifar-100-binary"])
def test_the_files_are_found_wherever_they_were_put(place: str, tmp_path: Path) -> None:
    folder = tmp_path / place
    write_folder(folder, contents(BINARY100, 1))
    assert CIFAR100.find(tmp_path) == folder


def test_a_name_means_the_official_number_of_images(tmp_path: Path) -> None:
    write(PYTHON10, tmp_path, True, contents(PYTHON10, 6))
    with pytest.raises(DataError, match="30 training and 6 test images, the official ones 50,000 and 10,000"):
        data.load("cifar10", tmp_path)


def test_an_archive_of_official_size_loads_by_name(tmp_path: Path) -> None:
    form = BINARY10
    row = bytes([0]) + bytes(range(256)) * 12
    rows = b"".join(bytes([label % 3]) + row[1:] for label in range(10_000))
    members = dict.fromkeys((*form.train, *form.test), rows) | {form.class_names: pack_names(form, list(NAMES[False]))}
    path = write(form, tmp_path, True, members)
    with pytest.raises(DataError, match=r"cifar-10-binary.tar.gz does not hold what was published .*hash differs"):
        data.load("cifar10", tmp_path)
    known = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    seen: list[tuple[str, int, int]] = []
    ours = replace(CIFAR10, forms=(replace(form, known=known),))
    dataset = ours.load(tmp_path, lambda *report: seen.append(report))
    assert seen == [("reading cifar-10-binary.tar.gz", 0, 1), ("reading cifar-10-binary.tar.gz", 1, 1)]
    assert (len(dataset.train), len(dataset.test)) == (50_000, 10_000)
    assert dataset.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("form", [BINARY10, PYTHON100], ids=lambda form: form.archive)
def test_no_flipped_bit_of_an_archive_is_read_as_another_image(form: Form, tmp_path: Path) -> None:
    path = write(form, tmp_path, True, contents(form, PER_FILE[is_hundred(form)]))
    whole, good = path.read_bytes(), cifar.hash_content(cifar.read("cifar", form, path))
    refused = 0
    for place in range(3, 8 * len(whole), 8 * len(whole) // 41):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert cifar.hash_content(cifar.read("cifar", form, path)) == good
        except DataError:
            refused += 1
    assert refused >= 40


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.archive)
def test_a_changed_pixel_label_or_name_is_not_the_published_content(form: Form, tmp_path: Path) -> None:
    members = contents(form, PER_FILE[is_hundred(form)])
    path = write(form, tmp_path, False, members)
    whole = cifar.read("cifar", form, path)
    ours = replace(CIFAR100, content=cifar.hash_content(whole))
    ours.check(whole, form, path)
    for split in (whole.train, whole.test):
        for values in (split.images.view(-1), split.labels):
            values[5] ^= 1
            with pytest.raises(DataError, match="it is damaged or was changed; get it again"):
                ours.check(whole, form, path)
            values[5] ^= 1
    renamed = replace(whole, class_names=("other", *whole.class_names[1:]))
    with pytest.raises(DataError, match="hash differs"):
        ours.check(renamed, form, path)


def test_unpacked_files_are_checked_where_their_hashes_are_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for form in (PYTHON10, BINARY10):
        write(form, tmp_path, False, contents(form, 6))
    with pytest.raises(DataError, match=r"data_batch_1 does not hold what was published"):
        cifar.check_files(PYTHON10, tmp_path / PYTHON10.folder)
    known = {
        name: hashlib.md5((tmp_path / PYTHON10.folder / name).read_bytes()).hexdigest()
        for name in (*PYTHON10.train, *PYTHON10.test, PYTHON10.class_names)
    }
    cifar.check_files(replace(PYTHON10, known=known), tmp_path / PYTHON10.folder)
    assert caplog.messages == []
    cifar.check_files(BINARY10, tmp_path / BINARY10.folder)
    assert "cifar-10-binary.tar.gz can be" in caplog.text


def test_what_is_not_there_is_said_with_where_and_how(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no cifar-10-binary.tar.gz or cifar-10-python.tar.gz in .*gradveil data get"):
        data.load("cifar10", tmp_path)
    with pytest.raises(DataError, match="is no folder: --root"):
        data.load("cifar10", tmp_path / "nowhere")


class Intruder:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, ("intruded",)


@pytest.mark.parametrize("file", ["data_batch_3", "batches.meta"])
def test_an_archive_with_a_pickle_that_runs_something_runs_nothing(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    members = contents(PYTHON10, 6) | {file: pickle.dumps({"data": Intruder()}, protocol=2)}
    write(PYTHON10, tmp_path, True, members)
    with pytest.raises(
        DataError, match=rf"{file} cannot be read as a pickle: it asks for \S+, which no data set needs"
    ):
        data.load("cifar10", tmp_path)
    assert not (tmp_path / "intruded").exists()


@pytest.mark.parametrize(
    ("form", "change", "message"),
    [
        (BINARY10, {"data_batch_2.bin": bytes(3000)}, "data_batch_2.bin has 3,000 bytes, no multiple of 3,073"),
        (BINARY10, {"test_batch.bin": b""}, "test_batch.bin (has 0 bytes|is empty)"),
        (BINARY100, {"train.bin": bytes(3074 * 4)}, "no training image of 99 of its 100 classes"),
        (BINARY10, {"data_batch_1.bin": b"\x09" + bytes(3072)}, "labels from 0 to 9"),
        (PYTHON10, {"test_batch": python2_pickle({"labels": [1]})}, "test_batch holds no whole array"),
        (
            PYTHON10,
            {"test_batch": python2_pickle({"labels": [1], "data": random_pixels(2, 3072)})},
            r"data of shape \(2, 3072\) for 1 labels",
        ),
        (PYTHON10, {"batches.meta": python2_pickle({})}, "batches.meta holds no list of class names"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_files_that_are_not_what_they_should_be(
    form: Form, change: dict[str, bytes], message: str, packed: bool, tmp_path: Path
) -> None:
    count = PER_FILE[is_hundred(form)]
    path = write(form, tmp_path, packed, contents(form, count) | change)
    with pytest.raises(DataError, match=message):
        cifar.read("cifar", form, path)


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_that_is_missing_is_named(packed: bool, tmp_path: Path) -> None:
    members = contents(BINARY10, 6)
    del members["data_batch_4.bin"]
    path = write(BINARY10, tmp_path, packed, members)
    with pytest.raises(DataError, match="data_batch_4"):
        cifar.read("cifar", BINARY10, path)


def test_a_cut_archive_is_one_clear_error(tmp_path: Path) -> None:
    path = write(PYTHON100, tmp_path, True, contents(PYTHON100, 200))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(DataError, match=r"cifar-100-python.tar.gz cannot be read .* cut off; get it again"):
        data.load("cifar100", tmp_path)
