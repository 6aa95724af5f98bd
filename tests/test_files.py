import os
import socket
from pathlib import Path

import pytest

from gradveil.files import open_regular, read_regular, require_regular


def test_a_regular_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert require_regular(path) == 5
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_regular(path, 4)


def test_what_would_wait_or_never_end_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, kind in {"pipe": "a named pipe", "zero": "a device", "socket": "a socket", ".": "a folder"}.items():
            with pytest.raises(OSError, match=f"it is {kind}, not a regular file"):
                open_regular(tmp_path / name)


@pytest.mark.parametrize("name", ["missing", "a\0b", "\ud800", "x" * 5000])
def test_a_name_that_leads_nowhere_is_an_error_of_the_file_system(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        require_regular(tmp_path / name)
    assert caught.value.strerror


def test_a_file_that_says_it_is_empty_is_still_read_to_the_limit() -> None:
    """The files of /proc do."""
    assert Path("/proc/self/status").stat().st_size == 0
    assert b"Pid:" in read_regular(Path("/proc/self/status"), 1 << 16)
