"""Result folders: one command at a time, and always a way on after a command that did not end well."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradveil.errors import OutputError
from gradveil.folders import LOCK, claimed_folder, only_command, only_writer
from gradveil.results import PART, write_file

WORK = """
import sys, time
from pathlib import Path
from gradveil.folders import claimed_folder
with claimed_folder(Path(sys.argv[1]), "audit") as folder:
    (folder / "piece").touch()
    print("ready", flush=True)
    time.sleep(60)
"""


def claim(path: Path, command: str = "audit", overwrite: bool = False, *pieces: str) -> None:
    with claimed_folder(path, command, overwrite, pieces):
        pass


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_folder_with_another_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    claim(tmp_path)
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(OutputError, match="--overwrite"):
        claim(tmp_path)
    claim(tmp_path, overwrite=True)
    with pytest.raises(OutputError, match="no earlier result of 'gradveil train'"):
        claim(tmp_path, "train", overwrite=True)
    assert names(tmp_path) == {"audit.json"}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="--out"):
            claim(place)


def test_a_failed_run_leaves_no_empty_folder(tmp_path: Path) -> None:
    for folder in (tmp_path / "new", tmp_path):
        with pytest.raises(ValueError, match="stop"), claimed_folder(folder, "audit"):
            raise ValueError("stop")
    assert names(tmp_path) == set()


def test_a_run_that_did_not_end_well_can_be_overwritten_by_its_own_command(tmp_path: Path) -> None:
    (tmp_path / "anything.bin").touch()
    with pytest.raises(ValueError, match="stop"), only_command(tmp_path, "audit", lambda _: None):
        raise ValueError("stop")
    with pytest.raises(OutputError, match="--overwrite"):
        claim(tmp_path)
    for _ in range(2):
        with pytest.raises(OutputError, match="choose another folder"):
            claim(tmp_path, "train", overwrite=True)
    claim(tmp_path, overwrite=True)
    assert names(tmp_path) == {"anything.bin"}


def test_pieces_of_an_earlier_version_can_be_overwritten_too(tmp_path: Path) -> None:
    (tmp_path / "init.safetensors").touch()
    with pytest.raises(OutputError, match="no earlier result"):
        claim(tmp_path, "train", True, "final.*")
    claim(tmp_path, "train", True, "init.*")


def test_two_commands_cannot_work_in_one_folder_and_a_kill_frees_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORK, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            for command in ("audit", "train"):
                with pytest.raises(OutputError, match=f"another command is at work in {tmp_path / 'out'}: wait"):
                    claim(tmp_path / "out", command, overwrite=True)
            with pytest.raises(OutputError, match="at work"), only_command(tmp_path / "out", "audit"):
                pass
        finally:
            os.kill(process.pid, signal.SIGKILL)
    assert names(tmp_path / "out") == {"piece", LOCK}
    claim(tmp_path / "out", overwrite=True)
    assert names(tmp_path / "out") == {"piece"}


def test_a_second_writer_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        only_writer(path, "somebody is at work"),
        pytest.raises(OutputError, match="somebody is at work"),
        only_writer(path, "somebody is at work"),
    ):
        pass
    with only_writer(path, "never said"):
        assert path.exists()
    with pytest.raises(OutputError, match="cannot write"), only_writer(tmp_path / "no" / "lock", "never said"):
        pass


def test_what_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "capsules").mkdir()
    left = tmp_path / "capsules" / f".round-1.safetensors.abc{PART}"
    left.write_bytes(b"half an image")
    with only_command(tmp_path, "federate"):
        assert not left.exists()


def test_half_written_files_have_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("os.fsync", lambda _: seen.extend(names(tmp_path)))
    write_file(tmp_path / "a.bin", b"1")
    assert seen[0].startswith(".a.bin.")
    assert seen[0].endswith(PART)
