"""Defences as a person names them on the command line."""

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradveil.cli import main


@dataclass(frozen=True)
class Result:
    exit_code: int
    output: str


def run(*arguments: str) -> Result:
    """Run the command as the shell does, errors rendered; stdout and stderr together."""
    output, code = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        patch.setattr(sys, "argv", ["gradveil", *arguments])
        patch.setenv("COLUMNS", "200")
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Result(code, output.getvalue())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "train"
    options = ["--model", "convnet-1", "--fraction", "0.02", "--epochs", "1", "--threads", "1", "--out", str(out)]
    found = run("train", "--defence", "dpsgd:noise=1.1:clip=1,prune:50", "--policy", "3-1-7", *options)
    assert found.exit_code == 0, found.output
    assert "ε = " in found.output
    assert "BatchNorm2d → GroupNorm" in found.output
    return out


def test_training_records_defences_edits_and_the_guarantee(trained: Path) -> None:
    record = json.loads((trained / "train.json").read_text())
    assert record["settings"]["defences"] == ["crop-flip", "policy:3-1-7", "dpsgd:noise=1.1:clip=1", "prune:50"]
    assert record["model_edits"] == ["BatchNorm2d → GroupNorm: body.1, body.4, body.7 and 5 more"]
    assert record["guarantee"]["epsilon"] > 0
    assert record["guarantee"]["delta"] == 1e-5


def attack(trained: Path, defence: str, out: Path) -> Result:
    options = ["--images", "1", "--steps", "1", "--defence", defence, "--out", str(out)]
    return run("attack", "--checkpoint", str(trained / "final.safetensors"), *options)


def test_a_changed_model_is_attacked_under_what_changed_it(trained: Path, tmp_path: Path) -> None:
    found = attack(trained, "dpsgd:noise=1.1:clip=1", tmp_path)
    assert found.exit_code == 0, found.output


def test_under_another_arm_its_checkpoint_is_refused(trained: Path, tmp_path: Path) -> None:
    found = attack(trained, "none", tmp_path)
    assert found.exit_code == 2
    assert "dpsgd:noise=1.1:clip=1" in found.output
    assert "Traceback" not in found.output


@pytest.mark.parametrize("command", ["audit", "train", "attack"])
@pytest.mark.parametrize("bad", ["gaussian:-1", "prune:150", "dpsgd", "laplacian:nan", "topk:0", "unknown:3"])
def test_bad_strengths_end_in_one_line(command: str, bad: str, tmp_path: Path) -> None:
    found = run(command, "--defence", bad, "--out", str(tmp_path / "out"))
    assert found.exit_code == 2
    assert len(found.output.strip().splitlines()) == 1
