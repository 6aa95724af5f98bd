"""Read files that others may have made: regular ones only, and never more than a limit.

A named pipe would wait for ever, a device might never end. Every refusal is an `OSError` with a `strerror`.
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Protocol

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
BLOCK = 2**20
MAX_BYTES = 2**33
MAX_JSON_BYTES = 2**28
"""The most that is read into memory at once of any file, and of a description or record."""


class Readable(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; none at the end."""


def require_regular(path: Path) -> int:
    """Return the size of a regular file, links followed; refuse anything else without opening it."""
    try:
        return check_kind(path, path.stat())
    except ValueError as error:  # a null byte, or a text that no file system can store
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from error


def check_kind(path: Path, status: os.stat_result) -> int:
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))
    return status.st_size


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; the open file is looked at again, because it may have been exchanged."""
    require_regular(path)
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        check_kind(path, os.fstat(stream.fileno()))
    except OSError:
        stream.close()
        raise
    return stream


def read_regular(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes, whatever its size is said to be."""
    with open_regular(path) as stream:
        content = read_up_to(stream, limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it holds more than {limit:,} bytes", str(path))
    return content


def read_up_to(stream: Readable, size: int) -> bytes:
    """Read at most `size` bytes; memory grows with what is there, where `read(size)` would take all of it at once."""
    content = bytearray()
    while len(content) < size:
        part = stream.read(min(BLOCK, size - len(content)))
        if not part:
            break
        content += part
    return bytes(content)
