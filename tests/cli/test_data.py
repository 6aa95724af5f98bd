import functools
import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from gradveil import cli, data
from gradveil.data.download import RemoteFile


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line as the shell would, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gradveil", "data", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Serve a folder on this machine; yield the folder and its address."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_list_names_every_data_set(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*data.DATASETS, "folder:", "npz:"))


def test_list_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(monkeypatch, "list", "--json", "--root", str(tmp_path)) == 0
    places = json.loads(capsys.readouterr().out)["places"]
    assert list(places) == list(data.DATASETS)
    assert places["cifar10"] is None
    assert places["fashion-mnist-sample"].endswith(".npz")


def test_info_shows_what_there_is_to_know(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "info", "fashion-mnist-sample") == 0
    shown = capsys.readouterr().out
    for text in ("5,000 for training, 1,000 for testing", "1 × 28 × 28", "0.28640094", "500 each", "Trouser"):
        assert text in shown


def test_info_as_json_is_nothing_but_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "info", "fashion-mnist-sample", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == "data info"
    assert record["train_images"] == 5000
    assert record["mean"] == list(data.load("fashion-mnist-sample").mean)
    assert record["test_images_in_train"] == 0


def test_info_shows_names_with_brackets_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    images = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    names = np.array(["[bold]", "[/]"])
    np.savez(tmp_path / "[red].npz", images=images, labels=np.arange(4) % 2, class_names=names)
    assert run(monkeypatch, "info", f"npz:{tmp_path}/[red].npz") == 0
    shown = capsys.readouterr().out
    assert "[red].npz" in shown
    assert "2: [bold], [/]" in shown


def test_info_counts_what_was_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    images = [b"\x89PNG broken", *([b"P5 2 2 255\n\x01\x02\x03\x04"] * 8)]
    offsets = np.cumsum([0, *map(len, images)])
    jpeg = np.frombuffer(b"".join(images), np.uint8)
    np.savez(tmp_path / "a.npz", jpeg=jpeg, offsets=offsets, labels=np.arange(9) % 2)
    assert run(monkeypatch, "info", f"npz:{tmp_path}/a.npz,skip-broken") == 0
    assert "broken images left out" in capsys.readouterr().out
    assert run(monkeypatch, "info", f"npz:{tmp_path}/a.npz") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "cifra10"), "did you mean 'cifar10'?"),
        (("info", "folder:/no/such/place"), "is no folder"),
        (("info", "cifar10", "--root", "/no/such/place"), "is no folder"),
        (("get", "fashion-mnist-sample"), "nothing to download"),
        (("get", "cifar10", "--mirror", "file:///etc"), "is no mirror"),
    ],
)
def test_nonsense_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("GRADVEIL_DATA", str(tmp_path))
    assert run(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("gradveil: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_get_downloads_checks_and_says_where(
    served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, address = served
    (folder / "part.bin").write_bytes(b"content")
    file = RemoteFile("part.bin", "http://127.0.0.1:9/part.bin", 7, hashlib.sha256(b"content").hexdigest())
    monkeypatch.setitem(data.DATASETS, "cifar10", replace(data.DATASETS["cifar10"], files=(file,)))
    assert run(monkeypatch, "get", "cifar10", "--root", str(tmp_path / "sets"), "--mirror", address) == 0
    assert (tmp_path / "sets/cifar10/part.bin").read_bytes() == b"content"
    assert f"cifar10 is complete and checked: {tmp_path}/sets/cifar10" in capsys.readouterr().out
    assert run(monkeypatch, "get", "cifar10", "--root", str(tmp_path / "sets"), "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_get_refuses_a_file_that_is_not_the_published_one(
    served: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, address = served
    (folder / "cifar-10-binary.tar.gz").write_bytes(b"something else")
    assert run(monkeypatch, "get", "cifar10", "--root", str(tmp_path), "--mirror", address) == 2
    assert "has 14 bytes, the published cifar-10-binary.tar.gz 170,052,171" in capsys.readouterr().err
    assert list((tmp_path / "cifar10").iterdir()) == []
