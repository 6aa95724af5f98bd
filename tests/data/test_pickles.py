import contextlib
import os
import pickle
import resource
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradveil.data import pickles
from gradveil.errors import DataError
from tests.data.official_files import python2_pickle, random_pixels

PIXELS = random_pixels(3, 7)
RECORD = {"data": PIXELS, "labels": [1, 0, 2], "filenames": ["a.png", "b.png", "c.png"]}


class Runs:
    """Pickles as a call of any function."""

    def __init__(self, function: Any, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        return self.call


def test_what_python_2_wrote_is_read_as_numpy_reads_it() -> None:
    content = python2_pickle(RECORD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy.core is an old name
        by_numpy = pickle.loads(content, encoding="bytes")
    record = pickles.read_record(content, "here")
    assert np.array_equal(pickles.byte_array(record["data"], "here"), by_numpy[b"data"])
    assert pickles.whole_numbers(record["labels"], "here").tolist() == by_numpy[b"labels"]
    assert pickles.names(record["filenames"], "here") == ("a.png", "b.png", "c.png")


@pytest.mark.parametrize("protocol", [3, 4])
def test_what_python_3_wrote_is_read(protocol: int) -> None:
    record = pickles.read_record(pickle.dumps(RECORD, protocol=protocol), "here")
    assert np.array_equal(pickles.byte_array(record["data"], "here"), PIXELS)
    assert pickles.names(record["filenames"], "here") == ("a.png", "b.png", "c.png")


def test_an_array_by_columns_is_read_by_columns() -> None:
    array = np.asfortranarray(random_pixels(4, 5))
    record = pickles.read_record(python2_pickle({"data": array}), "here")
    assert np.array_equal(pickles.byte_array(record["data"], "here"), array)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "call",
    [
        (os.system, "touch {}"),
        (eval, "open('{}', 'w')"),
        (open, "{}", "w"),
        (np.save, "{}", 1),
        (getattr, np, "save"),
    ],
)
def test_a_pickle_that_tries_to_run_something_runs_nothing(
    call: tuple[Any, ...], protocol: int, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    function, *arguments = call
    arguments = [item.format(trace) if isinstance(item, str) else None for item in arguments]
    content = pickle.dumps({"data": Runs(function, *arguments)}, protocol=protocol)
    with pytest.raises(DataError, match=r"it asks for \S+, which no data set needs"):
        pickles.read_record(content, "here")
    assert list(tmp_path.iterdir()) == []


def test_a_numpy_name_brings_no_numpy_code() -> None:
    content = b"\x80\x02cnumpy\nndarray\n(J\xff\xff\xff\x7ftR."  # ndarray(2147483647)
    with pytest.raises(DataError, match="holds a StoredArray"):
        pickles.read_record(content, "here")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2],
        np.arange(6.0),
        np.array([{}], dtype=object),
    ],
)
def test_only_an_array_of_bytes_is_taken(value: object) -> None:
    record = pickles.read_record(pickle.dumps({"data": value}, protocol=4), "here")
    with pytest.raises(DataError, match="no whole array of bytes"):
        pickles.byte_array(record["data"], "here")


@pytest.mark.parametrize("shape", [(3, 8), (-3, -7), (2**40, 7), ("3", 7)])
def test_an_array_must_have_the_bytes_of_its_shape(shape: tuple[object, ...]) -> None:
    stored = pickles.StoredArray()
    stored.__setstate__((1, shape, pickles.StoredType("u1"), False, bytes(21)))
    with pytest.raises(DataError, match="no whole array of bytes"):
        pickles.byte_array(stored, "here")


@pytest.mark.parametrize("value", [None, ["a"], [1.5], [2**70]])
def test_labels_are_whole_numbers(value: object) -> None:
    with pytest.raises(DataError, match="labels"):
        pickles.whole_numbers(value, "here")


@pytest.mark.parametrize("value", [None, [1], "text"])
def test_class_names_are_texts(value: object) -> None:
    with pytest.raises(DataError, match="class names"):
        pickles.names(value, "here")


def test_a_few_bytes_do_not_fill_the_memory() -> None:
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + 200_000
    with pytest.raises(DataError):
        pickles.read_record(b"\x80\x02Nr\xff\xff\xff\x07.", "here")  # remember None as number 134,217,727
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < limit


def test_a_pickle_of_something_else_is_refused() -> None:
    with pytest.raises(DataError, match="holds a list: the official file holds a dictionary"):
        pickles.read_record(pickle.dumps([1]), "here")


@given(st.binary(max_size=200))
def test_noise_is_refused_and_nothing_else(content: bytes) -> None:
    with pytest.raises(DataError):
        pickles.read_record(content, "here")


@given(st.integers(0, 300), st.integers(0, 255))
def test_a_flipped_byte_ends_in_data_or_in_one_error(position: int, byte: int) -> None:
    content = bytearray(python2_pickle(RECORD))
    content[position % len(content)] = byte
    with contextlib.suppress(DataError):  # any other exception fails the test
        record = pickles.read_record(bytes(content), "here")
        pickles.byte_array(record.get("data"), "here")
        pickles.whole_numbers(record.get("labels"), "here")
