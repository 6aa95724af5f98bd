"""Read members of a folder, a tar or a zip through one interface; nothing is unpacked to the disk.

An archive is not trusted: its size is limited, and a member with a path outside the archive is refused.
"""

import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, final

from gradveil.errors import DataError
from gradveil.files import open_regular, read_regular, read_up_to, require_regular

BLOCK = 1 << 20
DAMAGES = (
    *(EOFError, OSError, RuntimeError, ValueError, OverflowError),
    *(tarfile.TarError, zipfile.BadZipFile, struct.error, zlib.error, lzma.LZMAError),
)
"""What the standard library raises on an archive that is cut off, altered or encrypted."""


class Container(ABC):
    """A set of files, by their relative names."""

    @abstractmethod
    def names(self) -> list[str]:
        """List the members, with `/` between folders."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Read one member whole."""


@final
class Folder(Container):
    """A folder on the disk."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit

    def names(self) -> list[str]:
        paths = (Path(folder) / file for folder, _, files in os.walk(self.path) for file in files)
        return sorted(path.relative_to(self.path).as_posix() for path in paths)

    def read(self, name: str) -> bytes:
        return read_file(self.path / name, self.limit)


@final
class Tar(Container):
    """A tar file, compressed by gzip or not, read whole in one pass."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        with (
            archive_errors(path),
            open_plain(path) as stream,
            Bounded(stream, path, limit) as bounded,
        ):
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                self.members = {inner_name(path, member.name): read_member(archive, member) for member in archive}
            # The checksum of gzip is behind the end of the tar, and is checked only when it is read.
            while bounded.read(BLOCK):
                pass

    def names(self) -> list[str]:
        return [name for name, content in self.members.items() if content is not None]

    def read(self, name: str) -> bytes:
        content = self.members.get(name)
        if content is None:
            raise DataError(f"{self.path} has no file {name}: get the archive again")
        return content


@final
class Zip(Container):
    """A zip file; every member is checked against its CRC when it is read."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        with archive_errors(path):
            self.archive = zipfile.ZipFile(path)
        files = [info for info in self.archive.infolist() if not info.filename.endswith("/")]
        self.members = {inner_name(path, info.filename): info for info in files}
        if sum(info.file_size for info in self.members.values()) > limit:
            raise too_large(path, limit)

    def names(self) -> list[str]:
        return list(self.members)

    def read(self, name: str) -> bytes:
        if name not in self.members:
            raise DataError(f"{self.path} has no file {name}: get the archive again")
        with archive_errors(self.path):
            return self.archive.read(self.members[name])


@final
class Bounded(io.RawIOBase):
    """A stream that fails after `limit` bytes, whatever a header says."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, path: Path, limit: int) -> None:
        self.stream, self.path, self.limit, self.total = stream, path, limit, 0

    def read(self, size: int = -1, /) -> bytes:
        content = self.stream.read(size if size >= 0 else self.limit + 1)
        self.total += len(content)
        if self.total > self.limit:
            raise too_large(self.path, self.limit)
        return content


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    """Read a regular file of a tar; return None for links and devices."""
    stream = archive.extractfile(member) if member.isfile() else None
    if stream is None:
        return None
    content = stream.read()
    if len(content) != member.size:
        raise EOFError(f"{member.name} ends after {len(content):,} of {member.size:,} bytes")
    return content


def inner_name(path: Path, name: str) -> str:
    """Clean the name of a member; refuse one that points outside its archive."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts:
        raise DataError(f"{path} has a member called '{name}', which points outside the archive: do not use this file")
    return parts.as_posix()


def open_container(path: Path, limit: int) -> Container:
    """Open a folder, a tar or a zip that holds at most `limit` bytes in all (in a folder: per file)."""
    if path.is_dir():
        return Folder(path, limit)
    return Zip(path, limit) if path.suffix == ".zip" else Tar(path, limit)


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file for reading; if it is compressed by gzip, read through that."""
    with open_regular(path) as stream:
        compressed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        if not compressed:
            yield stream
            return
        with gzip.GzipFile(fileobj=stream) as plain:
            yield plain


def read_plain(path: Path, limit: int) -> bytes:
    """Read a file, through gzip if it is compressed, up to `limit` bytes of content."""
    with archive_errors(path), open_plain(path) as stream:
        content = read_up_to(stream, limit + 1)
    if len(content) > limit:
        raise too_large(path, limit)
    return content


def read_file(path: Path, limit: int) -> bytes:
    """Read a file as it is, up to `limit` bytes; what says that it is empty is not opened: it may be no true file."""
    with archive_errors(path):
        size = require_regular(path)
        if size == 0:
            raise DataError(f"{path} is empty: replace or remove it")
        if size > limit:
            raise too_large(path, limit)
        return read_regular(path, limit)


def too_large(path: Path, limit: int) -> DataError:
    return DataError(f"{path} holds more than {limit:,} bytes when unpacked: it is not the file it should be")


@contextmanager
def archive_errors(path: Path) -> Iterator[None]:
    """Turn any error of a damaged archive into one that names the file."""
    try:
        yield
    except DAMAGES as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{path} cannot be read: {error.strerror}; check the path and its permissions") from error
        raise DataError(f"{path} cannot be read ({error}): it is damaged or cut off; get it again") from error
