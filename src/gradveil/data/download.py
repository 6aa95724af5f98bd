"""Download a file completely or not at all: resume after a cut, check size and hash, then move it into place."""

import contextlib
import fcntl
import hashlib
import http
import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gradveil import __version__
from gradveil.data.base import Progress
from gradveil.errors import DataError, OutputError

ATTEMPTS = 5
PAUSE = 1.0
"""Seconds before the second attempt; the pause doubles at each further one."""
TIMEOUT = 30.0
BLOCK = 1 << 18
PASSING = (408, 429, 500, 502, 503, 504)
"""Status codes after which another attempt may succeed."""

Response = http.client.HTTPResponse

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its address, size and hash."""

    name: str
    url: str
    size: int
    sha256: str

    def at(self, mirror: str | None) -> str:
        """Return the address, on the mirror if there is one."""
        if mirror is None:
            return self.url
        if not mirror.startswith(("https://", "http://")):
            raise DataError(f"'{mirror}' is no mirror: give an address that starts with https:// or http://")
        return f"{mirror.rstrip('/')}/{self.name}"


class CutOffError(Exception):
    """The server stopped before the end; the bytes so far are kept, and another attempt may help."""


class RangeRefusedError(Exception):
    """The server does not resume at the byte that was asked for."""


def fetch(file: RemoteFile, folder: Path, progress: Progress, mirror: str | None = None) -> Path:
    """Put a checked copy of `file` into `folder`; one that is already there is checked and kept."""
    target = folder / file.name
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if target.is_file() and matches(target, file):
            progress(file.name, file.size, file.size)
            return target
        part = folder / f"{file.name}.part"
        with locked(part) as stream:
            check_space(folder, file.size - part.stat().st_size)
            fill(stream, file, file.at(mirror), progress)
            stream.flush()
            os.fsync(stream.fileno())
            part.replace(target)
    return target


def fill(stream: BinaryIO, file: RemoteFile, url: str, progress: Progress) -> None:
    """Complete the part file and check it; if the bytes of an earlier run are wrong, start over."""
    resumed = stream.seek(0, os.SEEK_END) > 0
    receive_all(stream, file, url, progress)
    if digest(stream) == file.sha256:
        return
    stream.truncate(0)
    if not resumed:
        raise DataError(
            f"{url} is not the published {file.name}: its SHA-256 is not {file.sha256[:12]}…; "
            "nothing was kept; try again later or name another server with --mirror"
        )
    logger.warning("what an earlier run left of %s does not fit: starting over", file.name)
    fill(stream, file, url, progress)


def receive_all(stream: BinaryIO, file: RemoteFile, url: str, progress: Progress) -> None:
    """Request the missing bytes, a limited number of times."""
    for attempt in range(ATTEMPTS):
        time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
        try:
            receive(stream, file, url, progress)
            return
        except CutOffError as error:
            logger.info("%s: %s (attempt %d of %d)", url, error, attempt + 1, ATTEMPTS)
            reason = error
    have = stream.seek(0, os.SEEK_END)
    raise DataError(
        f"{url} could not be downloaded: {reason}; {have:,} of {file.size:,} bytes are kept, "
        "run the command again to go on from there, or name another server with --mirror"
    )


def receive(stream: BinaryIO, file: RemoteFile, url: str, progress: Progress) -> None:
    """Append the bytes of one answer of the server."""
    have = stream.seek(0, os.SEEK_END)
    if have > file.size:
        have = stream.truncate(0)
    if have == file.size:
        return
    try:
        with contextlib.closing(request(url, have)) as response:
            start = start_of(response, have, file, url)
            stream.truncate(start)
            stream.seek(start)
            have = copy(response, stream, file, url, progress)
    except RangeRefusedError as error:
        stream.truncate(0)
        raise CutOffError("the server would not go on from where it stopped") from error
    if have < file.size:
        raise CutOffError(f"the server stopped after {have:,} of {file.size:,} bytes")


def copy(response: Response, stream: BinaryIO, file: RemoteFile, url: str, progress: Progress) -> int:
    """Append the body of an answer to the stream, and return the new length."""
    have = stream.tell()
    for block in blocks(response):
        have += len(block)
        if have > file.size:
            stream.truncate(0)
            raise DataError(f"{url} is longer than the {file.size:,} bytes of the published file: nothing was kept")
        stream.write(block)
        progress(file.name, have, file.size)
    return have


def blocks(response: Response) -> Iterator[bytes]:
    """Read the body of an answer; any broken connection is a cut."""
    while True:
        try:
            block = response.read(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise CutOffError(f"the connection broke ({error})") from error
        if not block:
            return
        yield block


def request(url: str, have: int) -> Response:
    """Request the file from byte `have` on."""
    headers = {"User-Agent": f"gradveil/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response: Response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise RangeRefusedError from error
        if error.code in PASSING:
            raise CutOffError(f"the server answers {error.code} {error.reason}") from error
        raise DataError(
            f"{url} cannot be downloaded: the server answers {error.code} {error.reason}; "
            "try again later or name another server with --mirror"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ConnectionResetError | TimeoutError | http.client.HTTPException):
            raise CutOffError(f"the connection broke ({reason})") from error
        raise DataError(f"{url} cannot be reached ({reason}): check the network, or name a --mirror") from error
    return response


def start_of(response: Response, have: int, file: RemoteFile, url: str) -> int:
    """Return the byte at which the answer starts; refuse an answer of another length than the published file."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        if not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise RangeRefusedError
        start = have
    else:
        start = 0
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and start + int(length) != file.size:
        raise DataError(
            f"{url} has {start + int(length):,} bytes, the published {file.name} {file.size:,}: "
            "this is another file; try again later or name another server with --mirror"
        )
    return start


@contextlib.contextmanager
def locked(part: Path) -> Iterator[BinaryIO]:
    """Open the part file for one process at a time; remove it if it stays empty."""
    with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = part.stat().st_ino == os.fstat(stream.fileno()).st_ino
        except (BlockingIOError, FileNotFoundError):
            ours = False
        if not ours:
            raise DataError(f"another process is downloading {part.stem} to {part.parent}: wait for it")
        try:
            yield stream
        finally:
            stream.flush()
            if part.exists() and part.stat().st_size == 0:
                part.unlink()


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into one that names the folder."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}; choose another folder with --root") from error


def check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OutputError(
            f"{folder} has {free:,} bytes free and {needed:,} are needed: choose another folder with --root"
        )


def matches(path: Path, file: RemoteFile) -> bool:
    """Tell whether a file on the disk is the published one."""
    with path.open("rb") as stream:
        same = path.stat().st_size == file.size and digest(stream) == file.sha256
    if not same:
        logger.warning("%s is not the published file: downloading it again", path)
    return same


def digest(stream: BinaryIO) -> str:
    stream.seek(0)
    sha256 = hashlib.sha256()
    while block := stream.read(BLOCK):
        sha256.update(block)
    return sha256.hexdigest()
