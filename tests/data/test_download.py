import fcntl
import hashlib
import logging
import random
import socket
from pathlib import Path

import pytest

from gradveil.data import download
from gradveil.data.base import silent
from gradveil.data.download import RemoteFile, fetch
from gradveil.errors import DataError, InputError, OutputError
from tests.data.misbehaving_server import Behaviour, serving

CONTENT = random.Random(0).randbytes(1_000_000)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.0)


def remote(url: str, content: bytes = CONTENT) -> RemoteFile:
    return RemoteFile("file.bin", url, len(content), hashlib.sha256(content).hexdigest())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_with_its_progress(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    with serving(Behaviour(CONTENT)) as server:
        path = fetch(remote(server.url), tmp_path / "new" / "folder", lambda *report: seen.append(report))
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["file.bin"]
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_a_file_that_is_there_is_checked_and_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(CONTENT)
    with serving(Behaviour(CONTENT)) as server:
        fetch(remote(server.url), tmp_path, silent)
    assert server.ranges == []


@pytest.mark.parametrize("wrong", [CONTENT[:-1], CONTENT[:-1] + b"!", b""], ids=["cut", "changed", "empty"])
def test_a_wrong_file_under_the_right_name_is_replaced(
    wrong: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file.bin").write_bytes(wrong)
    with serving(Behaviour(CONTENT)) as server, caplog.at_level(logging.WARNING):
        fetch(remote(server.url), tmp_path, silent)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert "is not the published file" in caplog.text


def test_after_a_cut_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, cuts=[300_000, 400_000])) as server:
        path = fetch(remote(server.url), tmp_path, silent)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=700000-"]


def test_after_a_reset_it_is_tried_again(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, cuts=[600_000], resets=True)) as server:
        assert fetch(remote(server.url), tmp_path, silent).read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_when_every_attempt_is_cut_the_part_is_kept_and_does_not_look_whole(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, cuts=[100_000] * download.ATTEMPTS)) as server:
        with pytest.raises(DataError, match=r"500,000 of 1,000,000 bytes are kept, run the command again"):
            fetch(remote(server.url), tmp_path, silent)
        assert names(tmp_path) == ["file.bin.part"]
        assert fetch(remote(server.url), tmp_path, silent).read_bytes() == CONTENT
        assert server.ranges[-1] == "bytes=500000-"
    assert names(tmp_path) == ["file.bin"]


def test_a_server_without_ranges_starts_over(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, cuts=[300_000], honours_ranges=False)) as server:
        path = fetch(remote(server.url), tmp_path, silent)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-"]


@pytest.mark.parametrize("trouble", [{"statuses": [416]}, {"wrong_range": True}])
def test_a_server_that_refuses_the_range_is_asked_for_the_whole(trouble: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:5000])
    with serving(Behaviour(CONTENT, **trouble)) as server:  # type: ignore[arg-type]
        path = fetch(remote(server.url), tmp_path, silent)
    assert path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=5000-", None]


def test_a_part_of_another_file_is_noticed_and_thrown_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 400_000)
    with serving(Behaviour(CONTENT)) as server, caplog.at_level(logging.WARNING):
        path = fetch(remote(server.url), tmp_path, silent)
    assert path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=400000-", None]
    assert "does not fit: starting over" in caplog.text


@pytest.mark.parametrize("length", [len(CONTENT), len(CONTENT) + 7])
def test_a_part_of_full_length_or_more_is_not_trusted(length: int, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * length)
    with serving(Behaviour(CONTENT)) as server:
        path = fetch(remote(server.url), tmp_path, silent)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_whole_part_needs_no_server(tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(remote("http://127.0.0.1:9/file.bin"), tmp_path, silent).read_bytes() == CONTENT


def test_a_wrong_hash_leaves_nothing(tmp_path: Path) -> None:
    with (
        serving(Behaviour(CONTENT[:-1] + b"!")) as server,
        pytest.raises(DataError, match=r"is not the published file.bin: its SHA-256 is not"),
    ):
        fetch(remote(server.url), tmp_path, silent)
    assert names(tmp_path) == []


def test_a_wrong_hash_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"old")
    with serving(Behaviour(b"!" * len(CONTENT))) as server, pytest.raises(DataError, match="SHA-256"):
        fetch(remote(server.url), tmp_path, silent)
    assert (tmp_path / "file.bin").read_bytes() == b"old"


@pytest.mark.parametrize(
    "content", [CONTENT + b"more", CONTENT[:50], b"<html>please log in</html>"], ids=["longer", "cut", "a page"]
)
def test_a_file_of_another_length_is_refused_at_once(content: bytes, tmp_path: Path) -> None:
    with (
        serving(Behaviour(content)) as server,
        pytest.raises(DataError, match=rf"has {len(content):,} bytes, the published file.bin 1,000,000"),
    ):
        fetch(remote(server.url), tmp_path, silent)
    assert names(tmp_path) == []
    assert len(server.ranges) == 1


def test_a_file_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    behaviour = Behaviour(CONTENT + b"more", announces_length=False)
    with serving(behaviour) as server, pytest.raises(DataError, match="longer than the 1,000,000 bytes"):
        fetch(remote(server.url), tmp_path, silent)
    assert names(tmp_path) == []


def test_a_length_that_is_not_announced_is_no_trouble(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, announces_length=False, cuts=[10])) as server:
        assert fetch(remote(server.url), tmp_path, silent).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 403, 401])
def test_a_refusal_is_final(status: int, tmp_path: Path) -> None:
    with (
        serving(Behaviour(CONTENT, statuses=[status])) as server,
        pytest.raises(DataError, match=f"the server answers {status}"),
    ):
        fetch(remote(server.url), tmp_path, silent)
    assert len(server.ranges) == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize("status", [503, 429, 500])
def test_passing_trouble_is_tried_again(status: int, tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT, statuses=[status, status])) as server:
        assert fetch(remote(server.url), tmp_path, silent).read_bytes() == CONTENT
    assert len(server.ranges) == 3


def test_trouble_that_does_not_pass_ends(tmp_path: Path) -> None:
    with (
        serving(Behaviour(CONTENT, statuses=[503] * 99)) as server,
        pytest.raises(DataError, match="answers 503"),
    ):
        fetch(remote(server.url), tmp_path, silent)
    assert len(server.ranges) == download.ATTEMPTS


def test_nobody_there_is_one_clear_error(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file.bin"
        with pytest.raises(DataError, match=r"cannot be reached .*: check the network, or name a --mirror"):
            fetch(remote(url), tmp_path, silent)


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silence:
        url = f"http://127.0.0.1:{silence.getsockname()[1]}/file.bin"
        with pytest.raises(DataError, match=r"the connection broke \(timed out\); 0 of 1,000,000 bytes are kept"):
            fetch(remote(url), tmp_path, silent)
    assert names(tmp_path) == []


def test_another_download_of_the_same_file_is_not_disturbed(tmp_path: Path) -> None:
    part = tmp_path / "file.bin.part"
    part.write_bytes(CONTENT[:10])
    with part.open("rb") as other, serving(Behaviour(CONTENT)) as server:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(DataError, match=r"another process is downloading file.bin"):
            fetch(remote(server.url), tmp_path, silent)
    assert part.read_bytes() == CONTENT[:10]


def test_an_interrupted_download_keeps_its_part(tmp_path: Path) -> None:
    def interrupt(what: str, done: int, total: int) -> None:  # noqa: ARG001
        if done > 500_000:
            raise KeyboardInterrupt

    with serving(Behaviour(CONTENT)) as server:
        with pytest.raises(KeyboardInterrupt):
            fetch(remote(server.url), tmp_path, interrupt)
        assert names(tmp_path) == ["file.bin.part"]
        assert fetch(remote(server.url), tmp_path, silent).read_bytes() == CONTENT
    assert server.ranges[1] is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match=r"cannot write to .*choose another folder with --root"):
        fetch(remote("http://127.0.0.1:9/file.bin"), tmp_path / "file", silent)


def test_a_disk_that_is_too_small_is_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="bytes free and"):
        fetch(RemoteFile("file.bin", "http://127.0.0.1:9/", 10**18, "0" * 64), tmp_path, silent)
    assert names(tmp_path) == []


def test_a_mirror_takes_the_place_of_the_address(tmp_path: Path) -> None:
    with serving(Behaviour(CONTENT)) as server:
        mirror = server.url.removesuffix("file.bin")
        assert fetch(remote("http://127.0.0.1:9/file.bin"), tmp_path, silent, mirror).read_bytes() == CONTENT


@pytest.mark.parametrize("mirror", ["file:///etc", "ftp://x", "here"])
def test_only_web_servers_are_mirrors(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no mirror"):
        fetch(remote("http://127.0.0.1:9/file.bin"), tmp_path, silent, mirror)
