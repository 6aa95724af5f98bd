import gzip
import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from gradveil.data.archives import open_container, read_plain
from gradveil.errors import DataError
from tests.data.official_files import write_folder, write_tar, write_zip

MEMBERS = {"top/a.bin": b"first", "top/inner/b.bin": bytes(range(256)) * 40}
LIMIT = 100_000


def write(kind: str, folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / {"folder": "unpacked", "tar": "packed.tar.gz", "zip": "packed.zip"}[kind]
    {"folder": write_folder, "tar": write_tar, "zip": write_zip}[kind](path, members)
    return path


@pytest.mark.parametrize("kind", ["folder", "tar", "zip"])
def test_every_kind_gives_the_same(kind: str, tmp_path: Path) -> None:
    container = open_container(write(kind, tmp_path, MEMBERS), LIMIT)
    assert sorted(container.names()) == sorted(MEMBERS)
    assert {name: container.read(name) for name in MEMBERS} == MEMBERS
    with pytest.raises(DataError, match="missing"):
        container.read("top/missing")


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "top/../../evil", "..\\evil"])
def test_a_member_that_points_outside_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    path = write(kind, tmp_path, {**MEMBERS, name: b"evil"})
    with pytest.raises(DataError, match="points outside the archive"):
        open_container(path, LIMIT)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name]


def test_a_link_in_a_tar_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "packed.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("top/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    container = open_container(path, LIMIT)
    assert container.names() == []
    with pytest.raises(DataError, match="has no file top/link"):
        container.read("top/link")


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_a_cut_archive_is_one_clear_error(kind: str, share: float, tmp_path: Path) -> None:
    path = write(kind, tmp_path, {"noise": random.Random(0).randbytes(50_000)})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(DataError, match="cut off"):
        open_container(path, LIMIT)


def test_a_flipped_byte_in_a_zip_fails_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a", b"x" * 1000)
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="CRC"):
        open_container(path, LIMIT).read("a")


def test_a_zip_with_a_name_that_is_no_text_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "packed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("name é", b"x")
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\x80\x80"))
    with pytest.raises(DataError, match="damaged"):
        open_container(path, LIMIT)


def test_an_encrypted_zip_is_one_clear_error(tmp_path: Path) -> None:
    path = write("zip", tmp_path, {"a": b"secret"})
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="encrypted"):
        open_container(path, LIMIT).read("a")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_that_swells_is_stopped(kind: str, tmp_path: Path) -> None:
    path = write(kind, tmp_path, {"zeros": bytes(50_000_000)})
    assert path.stat().st_size < LIMIT
    with pytest.raises(DataError, match="more than 100,000 bytes when unpacked"):
        open_container(path, LIMIT)


def test_a_tar_header_that_swells_is_stopped(tmp_path: Path) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.XHDTYPE, 2**32
    path = tmp_path / "packed.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(10_000_000)))
    with pytest.raises(DataError, match="when unpacked"):
        open_container(path, LIMIT)


def test_a_compressed_file_that_swells_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DataError, match="when unpacked"):
        read_plain(path, LIMIT)


def test_plain_and_compressed_files_read_alike(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"content"))
    assert read_plain(tmp_path / "a", LIMIT) == read_plain(tmp_path / "a.gz", LIMIT) == b"content"


def test_a_zip_may_be_read_as_often_as_one_likes(tmp_path: Path) -> None:
    container = open_container(write("zip", tmp_path, MEMBERS), LIMIT)
    assert [container.read("top/a.bin") for _ in range(3)] == [b"first"] * 3


def test_what_is_no_archive_is_one_clear_error(tmp_path: Path) -> None:
    for name in ("text.zip", "text.tar.gz"):
        (tmp_path / name).write_bytes(io.BytesIO(b"hello " * 200).getvalue())
        with pytest.raises(DataError, match="cannot be read"):
            open_container(tmp_path / name, LIMIT)
