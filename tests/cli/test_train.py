"""`gradveil train` as a person uses it: options, files, errors, and a kill in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradveil.cli import main
from gradveil.folders import only_command
from gradveil.training import load_checkpoint, read_curves

QUICK = ("--model", "lenet-relu", "--fraction", "0.05", "--epochs", "2", "--batch-size", "50", "--threads", "1")


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """Run `gradveil train` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *options: str) -> Outcome:
        self.monkeypatch.setattr(sys, "argv", ["gradveil", "train", *options])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Outcome(code, *self.capsys.readouterr())


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "train.json").read_text())
    return record


@pytest.mark.parametrize("left", [("init.safetensors", "init.json"), ("final.safetensors",), ("resume.safetensors",)])
def test_what_a_training_left_has_a_way_on(train: Command, tmp_path: Path, left: tuple[str, ...]) -> None:
    for name in left:
        (tmp_path / name).write_bytes(b"half")
    refused = train(*QUICK, "--out", str(tmp_path))
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert train(*QUICK, "--resume", str(tmp_path)).code == 2
    assert train(*QUICK, "--out", str(tmp_path), "--overwrite").code == 0
    assert load_checkpoint(tmp_path / "final.safetensors").spec.name == "lenet-relu"
    assert not (tmp_path / ".gradveil.lock").exists()


def test_a_second_training_in_the_folder_is_refused(train: Command, tmp_path: Path) -> None:
    with only_command(tmp_path, "audit"):
        for options in (("--out",), ("--resume",), ("--overwrite", "--out")):
            refused = train(*QUICK, *options, str(tmp_path))
            assert refused.code == 2
            assert refused.err == (
                f"gradveil: another command is at work in {tmp_path}: wait for it, or choose another folder with "
                "--out\n"
            )


def test_everything_is_written(train: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    outcome = train(*QUICK, "--snapshots", "step-1,epoch-1", "--out", str(out))
    assert outcome.code == 0, outcome.err
    assert "test accuracy" in outcome.out
    phases = ("step-1", "epoch-1", "final")
    files = {f"{phase}.{kind}" for phase in phases for kind in ("safetensors", "json")}
    assert {path.name for path in out.iterdir()} == files | {
        "train.json",
        "curves.jsonl",
        "curves.png",
        "resume.safetensors",
    }
    record = record_of(out)
    assert record["command"] == "train"
    assert record["test_accuracy"] == read_curves(out)[-1].test_accuracy
    assert record["settings"]["recipe"] == "fast"
    assert record["settings"]["defences"] == ["crop-flip"]
    assert load_checkpoint(out / record["snapshots"]["epoch-1"]).made["step"] == 5


def test_json_goes_to_stdout_alone_and_quiet_says_nothing(train: Command, tmp_path: Path) -> None:
    outcome = train(*QUICK, "--json", "--out", str(tmp_path / "one"))
    assert json.loads(outcome.out) == record_of(tmp_path / "one")
    assert train(*QUICK, "--quiet", "--out", str(tmp_path / "two")).out == ""


def test_the_same_command_gives_the_same_weights(train: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert train(*QUICK, "--policy", "3-1-7", "--out", str(tmp_path / name)).code == 0
    first, second = ((tmp_path / name / "final.safetensors").read_bytes() for name in ("one", "two"))
    assert first == second


@pytest.mark.parametrize(
    ("options", "defences"),
    [
        (("--policy", "3-1-7+43-18-18"), ["crop-flip", "policy:3-1-7+43-18-18"]),
        (("--policy", "3-1-7", "--no-base"), ["policy:3-1-7"]),
        (("--no-base",), []),
        (("--no-base", "--defence", "policy:43-18-18"), ["policy:43-18-18"]),
    ],
)
def test_what_is_done_to_the_images(
    train: Command, tmp_path: Path, options: tuple[str, ...], defences: list[str]
) -> None:
    assert train(*QUICK, *options, "--out", str(tmp_path)).code == 0
    assert record_of(tmp_path)["settings"]["defences"] == defences


def test_other_data_take_the_paper_recipe(train: Command, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8), np.arange(60) % 3
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)
    data = f"npz:{tmp_path}/train.npz,{tmp_path}/test.npz"
    common = (
        "--data",
        data,
        "--model",
        "resnet18-w2",
        "--epochs",
        "1",
        "--threads",
        "1",
        "--out",
        str(tmp_path / "run"),
    )
    assert train(*common).code == 0
    settings = record_of(tmp_path / "run")["settings"]
    assert (settings["recipe"], settings["batch_size"], settings["schedule"]) == ("paper", 128, "steps")
    assert train(*common, "--recipe", "fast", "--overwrite").code == 0
    assert record_of(tmp_path / "run")["settings"]["recipe"] == "fast"


def test_a_model_of_ones_own_from_the_working_folder(
    train: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_network.py").write_text(
        "from torch import nn\n"
        "def make(shape, classes, mean, std):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(784, classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert train(*QUICK, "--model", "my_network:make", "--out", "run").code == 0
    assert load_checkpoint(tmp_path / "run" / "final.safetensors", "my_network:make").spec.classes == 10
    monkeypatch.delitem(sys.modules, "my_network")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "convnet"), "unknown model 'convnet'"),
        (("--model", "no_such:make"), "cannot be imported"),
        (("--data", "mnist"), "unknown data set 'mnist'"),
        (("--policy", "3-1-77"), "77"),
        (("--defence", "magic:1"), "magic"),
        (("--epochs", "0"), "epochs is 0"),
        (("--fraction", "0"), "fraction is 0"),
        (("--snapshots", "epoch-9"), "choose from epoch-1 to epoch-2"),
        (("--snapshots", "soon"), "'soon' is no phase"),
        (("--learning-rate", "1e9"), "diverged"),
        (("--device", "tpu"), "device 'tpu'"),
        (("--seed", "-1"), "seed -1"),
        (("--resume", "nowhere"), "leave out --out"),
        (("--epoch", "1"), "did you mean --epochs?; see gradveil train --help"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing_behind(
    train: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "run"
    outcome = train(*QUICK, "--out", str(out), *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""
    assert not (out / "train.json").exists()


def test_an_earlier_result_is_kept_until_the_new_run_really_starts(train: Command, tmp_path: Path) -> None:
    assert train(*QUICK, "--snapshots", "step-2", "--out", str(tmp_path)).code == 0
    before = record_of(tmp_path)
    assert "pass --overwrite" in train(*QUICK, "--out", str(tmp_path)).err
    assert train(*QUICK, "--overwrite", "--snapshots", "epoch-9", "--out", str(tmp_path)).code == 2
    assert record_of(tmp_path) == before
    assert train(*QUICK, "--overwrite", "--seed", "1", "--out", str(tmp_path)).code == 0
    assert record_of(tmp_path)["settings"]["seed"] == 1
    assert not (tmp_path / "step-2.safetensors").exists()


LONG = (
    *("--model", "lenet-relu", "--fraction", "0.1", "--batch-size", "20", "--learning-rate", "0.02"),
    *("--epochs", "8", "--snapshots", "init,step-10,epoch-2,epoch-7"),
)


def start(folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Start the command as a process of its own."""
    command = [sys.executable, "-c", "from gradveil.cli import main; main()", "train"]
    return subprocess.Popen([*command, *LONG, "--quiet", "--threads", "1", "--out", str(folder), *options])


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bits(train: Command, tmp_path: Path) -> None:
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    process = start(cut)
    while not (cut / "curves.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (cut / "train.json").exists()
    assert "go on with --resume" in train(*LONG, "--threads", "1", "--out", str(cut)).err
    assert train("--resume", str(cut), "--quiet").code == 0
    assert start(whole).wait() == 0
    for phase in record_of(whole)["snapshots"]:
        assert (cut / f"{phase}.safetensors").read_bytes() == (whole / f"{phase}.safetensors").read_bytes()
    assert record_of(cut)["test_accuracy"] == record_of(whole)["test_accuracy"]
    assert [point.train_loss for point in read_curves(cut)] == [point.train_loss for point in read_curves(whole)]
