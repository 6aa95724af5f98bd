"""`gradveil audit --resume`: after a kill the same record, and nothing that does not belong together."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

CODE = "from gradveil.cli import main; main()"
WORDS = (
    *("audit", "--images", "4", "--steps", "6", "--phase", "init", "--phase", "final", "--epochs", "1"),
    *("--defence", "crop-flip", "--canary", "1", "--workers", "1", "--json"),
)


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CODE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False)


def kept_files(folder: Path) -> list[Path]:
    return sorted((folder / "work").glob("*.safetensors"))


def times_of(paths: list[Path]) -> dict[Path, int]:
    """Return when files were written; one that is gone is left out."""
    times = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            times[path] = path.stat().st_mtime_ns
    return times


def without_times(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    record["environment"].pop("finished")
    for entry in (*record["rows"], *record["summaries"]):
        entry.pop("seconds")
    for key in ("sha256_of_content", "command_line"):
        record.pop(key)
    return record


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder of an audit that was killed after both trainings and an attack."""
    out = tmp_path_factory.mktemp("killed") / "run"
    process = start(*WORDS, "--out", str(out))
    while len(kept_files(out)) < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (out / "audit.json").exists()
    return out


@pytest.fixture
def left(killed: Path, tmp_path: Path) -> Path:
    """Copy what the kill left."""
    return Path(shutil.copytree(killed, tmp_path / "run"))


@pytest.mark.slow
def test_after_a_kill_the_record_is_the_same(left: Path, tmp_path: Path) -> None:
    old = times_of(kept_files(left))
    with start("audit", "--resume", str(left), "--quiet", "--workers", "1") as resumed:
        while resumed.poll() is None:
            assert times_of(list(old)).items() <= old.items(), "a kept job was run again"
            time.sleep(0.1)
    assert resumed.returncode == 0
    whole = finish(*WORDS, "--out", str(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    assert without_times(left / "audit.json") == without_times(tmp_path / "whole" / "audit.json")
    assert not (left / "work").exists()
    command = json.loads((left / "audit.json").read_text())["command_line"]
    assert command.startswith("gradveil audit --images 4")


@pytest.mark.slow
def test_other_options_are_refused_and_the_same_are_not(left: Path) -> None:
    done = finish("audit", "--resume", str(left), "--images", "5", "--workers", "1")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"gradveil: the audit in {left} was started otherwise: settings.images was 4 and is 5"
    )
    assert done.stderr.count("\n") == 1
    assert finish(*WORDS, "--resume", str(left)).returncode == 0


@pytest.mark.slow
def test_without_resume_it_is_not_touched(left: Path) -> None:
    done = finish(*WORDS, "--out", str(left))
    assert done.returncode == 2
    assert "--resume" in done.stderr
    assert len(kept_files(left)) >= 3


@pytest.mark.slow
def test_a_damaged_kept_file_is_one_line(left: Path) -> None:
    for path in kept_files(left):
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
    done = finish("audit", "--resume", str(left))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "was changed or damaged" in done.stderr


@pytest.mark.slow
def test_it_can_be_thrown_away_for_a_new_one(left: Path) -> None:
    done = finish(
        *("audit", "--images", "2", "--steps", "2", "--phase", "init", "--defence", "none", "--workers", "1", "--json"),
        *("--overwrite", "--out", str(left)),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settings"]["images"] == 2
    assert not (left / "work").exists()
