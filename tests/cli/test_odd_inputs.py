"""Odd files, names and places: one line that can be read, exit code 2, and nothing that a terminal obeys."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gradveil.cli import main
from gradveil.journal import Journal
from tests.data.official_files import picture

Run = Callable[..., str]
LONG = "x" * 300
TRAIN = ("train", "--model", "mlp", "--epochs", "1", "--snapshots", "final")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line, which must stop with code 2, and return its one line."""

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["gradveil", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        shown = capsys.readouterr()
        assert stopped.value.code == 2, shown.err
        assert shown.err.startswith("gradveil: ")
        assert shown.err.count("\n") == 1
        assert shown.err.rstrip("\n").isprintable()
        return shown.err

    return run


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line, which must succeed, and return what it printed."""

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["gradveil", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert stopped.value.code == 0, printed.err
        return printed.out

    return run


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Two classes of five images."""
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(5):
            picture(16, 16, 3, seed=number).save(tmp_path / "pets" / name / f"{number}.png")
    return tmp_path / "pets"


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("/nowhere")


ODD_FILES = [
    (make_pipe, "a named pipe"),
    (link_to_zero, "a device"),
    (link_to_nothing, "No such file"),
    (Path.touch, "empty"),
]


@pytest.mark.parametrize(("make", "reason"), ODD_FILES)
def test_what_is_no_regular_file_is_refused_or_left_out(
    make: Callable[[Path], None], reason: str, images: Path, refused: Run, shown: Run
) -> None:
    make(images / "cat" / "odd.png")
    line = refused("data", "info", f"folder:{images}")
    assert "odd.png" in line
    assert reason in line
    assert "skip-broken" in line
    figures = json.loads(shown("data", "info", f"folder:{images},skip-broken", "--json"))
    assert figures["skipped"] == [str(images / "cat" / "odd.png")]
    assert figures["train_images"] + figures["test_images"] == 10


def test_a_folder_of_the_kernel_is_no_data_set(refused: Run) -> None:
    refused("data", "info", "folder:/proc/self")


def test_digits_that_are_no_numbers_have_an_order(images: Path, shown: Run) -> None:
    for name in ("1²2.png", "١.png", f"{'9' * 200}.png"):
        shutil.copy(images / "cat" / "0.png", images / "cat" / name)
    figures = json.loads(shown("data", "info", f"folder:{images}", "--json"))
    assert figures["train_images"] + figures["test_images"] == 13


def test_a_class_name_must_be_text(images: Path, refused: Run) -> None:
    os.rename(images / "cat", os.fsencode(images) + b"/caf\xe9")  # noqa: PTH104  # a Path would need the decoded name
    assert r"caf\xe9" in refused("data", "info", f"folder:{images}")


def test_an_argument_must_be_text(tmp_path: Path, refused: Run) -> None:
    assert r"caf\xe9" in refused("data", "info", f"folder:{tmp_path}/caf\udce9")


def test_names_are_shown_and_not_obeyed(images: Path, shown: Run, refused: Run) -> None:
    evil = "cat\x1b[31m\n\x07[b][bold]"
    (images / "cat").rename(images / evil)
    printed = shown("data", "info", f"folder:{images}")
    assert not {"\x1b", "\x07"} & set(printed)
    assert r"cat\x1b[31m\n\x07[b][bold]" in "".join(line.strip("│ ") for line in printed.splitlines())
    (images / evil / "0.png").write_bytes(b"no image")
    assert r"\x1b[31m\n\x07[b]" in refused("data", "info", f"folder:{images}")


def test_a_file_that_unpacks_a_thousandfold_is_refused(tmp_path: Path, refused: Run) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("images.npy", "w") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "|u1", "fortran_order": False, "shape": (100, 1000, 1000)}
        )
        for _ in range(100):
            stream.write(bytes(1_000_000))
    assert path.stat().st_size < 200_000
    assert "unpack to 100,000" in refused("data", "info", f"npz:{path}")


@pytest.mark.parametrize("name", ["folder:~nobody-here/x", "npz:~nobody-here/x", f"folder:{LONG}", f"npz:{LONG}"])
def test_a_path_that_cannot_be(name: str, refused: Run) -> None:
    refused("data", "info", name)


def test_a_pipe_is_no_checkpoint_and_no_policy(tmp_path: Path, refused: Run) -> None:
    for name in ("a.json", "b.safetensors"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "a.safetensors").touch()
    assert "a named pipe" in refused("train", "--policy", f"{tmp_path}/a.json", "--out", f"{tmp_path}/out")
    assert "a named pipe" in refused("score", "none", "--checkpoint", f"{tmp_path}/a.safetensors")
    refused("score", "none", "--checkpoint", f"{tmp_path}/b.safetensors")


@pytest.mark.parametrize("line", ["5", "null", "[" * 50_000 + "]" * 50_000, '{"trial": 5}', "\x00"])
@pytest.mark.parametrize("study", ["attacks", "defences", "verdict", "federated", "policies-hide", "scores"])
def test_a_journal_of_something_else_is_refused(study: str, line: str, tmp_path: Path, refused: Run) -> None:
    for name in ("journal.jsonl", "scores.jsonl"):
        (tmp_path / name).write_text(f"{line}\n")
    refused("reproduce", study, "--table", "--out", str(tmp_path))


@pytest.mark.parametrize("study", ["attacks", "defences", "verdict", "federated", "policies-hide", "scores"])
@pytest.mark.parametrize(
    "entry", [{"trial": 5}, {"cell": {}}, {"trial": {"part": "bundled"}, "study": {"training": 5}}]
)
def test_the_table_of_another_study_is_refused(
    study: str, entry: dict[str, object], tmp_path: Path, refused: Run
) -> None:
    for name in ("journal.jsonl", "scores.jsonl"):
        Journal(tmp_path / name).append(entry)
    refused("reproduce", study, "--table", "--out", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "scores.jsonl"]


@pytest.mark.parametrize("study", ["attacks", "defences", "verdict", "federated", "policies-hide", "single-transforms"])
def test_a_file_is_no_folder_of_a_study(study: str, tmp_path: Path, refused: Run) -> None:
    (tmp_path / "file").write_text("mine")
    words = ["--data", "fashion-mnist-sample"] if study == "policies-hide" else []
    refused("reproduce", study, "--out", str(tmp_path / "file"), *words)
    assert (tmp_path / "file").read_text() == "mine"


COMMANDS = {
    "train": "train --epochs 1",
    "attack": "attack --steps 1 --images 1",
    "audit": "audit --steps 1 --images 1 --workers 1",
    "search": "search --candidates 4 --keep 2 --workers 1",
    "federate": "federate --rounds 1",
    "reproduce": "reproduce attacks --part speed",
}


@pytest.mark.parametrize("place", [f"/tmp/{LONG}", f"/tmp/{'x/' * 3000}", "/dev/full", "/proc/self/here"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(command: str, place: str, refused: Run) -> None:
    refused(*COMMANDS[command].split(), "--out", place)


def test_a_device_is_never_replaced(images: Path, refused: Run) -> None:
    np.savez(images / "a.npz", images=np.zeros((2, 8, 8), np.uint8), labels=np.arange(2))
    refused("transforms", "apply", str(images / "a.npz"), "/dev/full", "--policy", "3-1-7", "--overwrite")
    refused("transforms", "--policy", "3-1-7", "--sheet", "/dev/full")
    assert not Path("/dev/full").is_file()


def test_a_full_output_is_one_line() -> None:
    code = "from gradveil.cli import main; main()"
    for words in (["data", "list"], ["--version"], ["data", "info", "fashion-mnist-sample", "--json"]):
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                [sys.executable, "-c", code, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert ended.returncode == 2
        assert ended.stderr == "gradveil: the output cannot be written: No space left on device\n"


def test_no_steps_are_refused_before_the_search(tmp_path: Path, refused: Run) -> None:
    words = ("search", "--validate", "1", "--validate-steps", "0", "--out", str(tmp_path / "out"))
    assert "--validate-steps 0" in refused(*words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("odd", ["[/b]", "[red]", "a\nb\x1b[31m", "$x^$"])
def test_a_place_with_an_odd_name_is_written_and_named(odd: str, tmp_path: Path, shown: Run) -> None:
    words = [*TRAIN, "--fraction", "0.01", "--batch-size", "16"]
    printed = shown(*words, "--out", str(tmp_path / odd))
    assert (tmp_path / odd / "train.json").exists()
    assert not {"\x1b"} & set(printed)
    assert odd.replace("\n", r"\n").replace("\x1b", r"\x1b") in printed.replace("\n", "").replace(" ", "")


def test_a_data_set_with_dollars_in_its_path_is_drawn(images: Path, tmp_path: Path, shown: Run) -> None:
    place = images.rename(tmp_path / "$x^$")
    shown(*TRAIN, "--batch-size", "4", "--data", f"folder:{place}", "--out", str(tmp_path / "out"))
    assert (tmp_path / "out" / "curves.png").stat().st_size > 0
