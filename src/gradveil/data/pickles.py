"""Read the plain data in an untrusted pickle without running its code.

A pickle names functions to call. Only the names with which numpy writes an array are admitted here, and they are
replaced by classes that only store their arguments; checked code builds the array from these afterwards.
"""

import io
import math
import pickle
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradveil.errors import DataError


@final
class StoredType:
    """Replaces `numpy.dtype`; stores the name of the type, such as `u1`."""

    def __init__(self, name: object = None, *_: object) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        """Ignore the byte order and alignment, which an array of bytes does not need."""


@final
class StoredArray:
    """Replaces `numpy.ndarray`; stores the state from which numpy would rebuild the array."""

    def __init__(self, *_: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): StoredArray,
    ("numpy._core.multiarray", "_reconstruct"): StoredArray,
    ("numpy", "ndarray"): StoredArray,
    ("numpy", "dtype"): StoredType,
}


@final
class PlainUnpickler(pickle._Unpickler):
    """Refuses every name that is not admitted.

    This is the unpickler in Python: the one in C allocates gigabytes for a pickle of nine bytes that announces that
    many objects.
    """

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}, which no data set needs")
        return ADMITTED[module_name, global_name]


def read_record(content: bytes, place: str) -> dict[str, object]:
    """Read a pickled dictionary of Python 2 or 3; strings of Python 2 become bytes, and all keys text."""
    try:
        record = PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises almost anything; none of its code has run
        raise DataError(f"{place} cannot be read as a pickle: {error}; get the official file again") from error
    if not isinstance(record, dict):
        raise DataError(f"{place} holds a {type(record).__name__}: the official file holds a dictionary; get it again")
    return {text(key): value for key, value in record.items()}


def text(value: object) -> str:
    """Turn a string of either Python into text."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def byte_array(value: object, place: str) -> NDArray[np.uint8]:
    """Turn a stored array into a real one of unsigned bytes."""
    match value:
        case StoredArray(state=(_, tuple(shape), StoredType(name="u1" | b"u1"), by_columns, bytes(content))):
            if all(isinstance(side, int) and side > 0 for side in shape) and math.prod(shape) == len(content):
                array = np.frombuffer(content, dtype=np.uint8)
                return array.reshape(shape, order="F" if by_columns else "C")
    raise DataError(f"{place} holds no whole array of bytes: it is not the official file; get it again")


def whole_numbers(value: object, place: str) -> NDArray[np.int64]:
    """Turn a list of whole numbers into an array."""
    if not isinstance(value, list) or not all(isinstance(number, int) for number in value):
        raise DataError(f"{place} holds no list of labels: it is not the official file; get it again")
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError as error:
        raise DataError(f"{place} holds labels beyond any number of classes: get the official file again") from error


def names(value: object, place: str) -> tuple[str, ...]:
    """Turn a list of strings of either Python into class names."""
    if not isinstance(value, list) or not all(isinstance(name, str | bytes) for name in value):
        raise DataError(f"{place} holds no list of class names: it is not the official file; get it again")
    return tuple(text(name) for name in value)
