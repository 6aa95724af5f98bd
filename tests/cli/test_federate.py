"""`gradveil federate` as a person uses it: options, files, errors, and a kill in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.cli.federate import choose_local, make_table, read_rounds, write_arm
from gradveil.errors import SettingsError
from gradveil.federated import FEDAVG, Dropped, RoundOutcome
from gradveil.training import load_checkpoint

QUICK = ("--model", "lenet", "--clients", "4", "--batch-size", "4", "--seed", "1")


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "federate", *QUICK, *options])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_run_leaves_its_files_and_a_checkpoint_for_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    options = ("--rounds", "2", "--policy", "3-1-7", "--partition", "by-class", "--out", str(out))
    monkeypatch.setenv("COLUMNS", "100")
    assert run(monkeypatch, *options, "--clients", "10", "--capture", "2", "--keep-truth") == 0
    shown = capsys.readouterr().out
    assert "test accuracy" in shown
    assert "10, classes:2" in shown
    names = {path.name for path in out.iterdir()}
    assert names >= {"federate.json", "journal.jsonl", "curve.png", "final.safetensors", "final.json", "capsules"}
    record = json.loads((out / "federate.json").read_text())
    assert [entry["round"] for entry in record["rounds"]] == [1, 2]
    assert record["settings"]["arm"] == "policy:3-1-7"
    assert load_checkpoint(out / "final.safetensors").spec.name == "lenet"
    assert (out / "capsules" / "round-0002-client-09.truth.safetensors").exists()


def test_json_goes_to_stdout_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    options = ("--algorithm", "fedavg", "--local-steps", "1", "--mode", "eval", "--out", str(out), "--json")
    assert run(monkeypatch, "--rounds", "1", *options) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["command"], len(record["rounds"])) == ("federate", 1)
    assert record["settings"]["local"]["mode"] == "eval"
    assert record["settings"]["local"]["epochs"] is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--algorithm", "fedprox"), "choose fedsgd or fedavg"),
        (("--capture", "first"), "with commas between"),
        (("--capture", "9"), "choose from 1 to 2"),
        (("--mode", "test"), "choose from train, eval"),
        (("--local-optimiser", "lion"), "choose from sgd, adam, muon"),
        (("--engine", "cloud"), "unknown engine"),
        (("--partition", "fair"), "unknown partition"),
        (("--resume",), "no run to resume"),
        (("--workers", "0"), "0 workers"),
        (("--topology", "star"), "unknown topology"),
        (("--topology", "ring", "--observer", "4"), "give 0 to 3"),
        (("--topology", "ring", "--secure"), "needs a server"),
    ],
)
def test_wrong_options_end_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    reason: str,
) -> None:
    assert run(monkeypatch, "--rounds", "2", "--out", str(tmp_path / "run"), *options) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(monkeypatch, "--rounds", "150", "--out", str(whole), "--quiet") == 0
    command = [sys.executable, "-m", "gradveil", "federate", *QUICK, "--rounds", "150", "--out", str(cut)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    end = time.monotonic() + 60
    while time.monotonic() < end and count_lines(cut / "journal.jsonl") < 20:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 20 <= count_lines(cut / "journal.jsonl") < 150
    assert run(monkeypatch, "--rounds", "150", "--out", str(cut)) == 2, "an unfinished run is not overwritten"
    assert run(monkeypatch, "--rounds", "150", "--out", str(cut), "--resume") == 0
    assert (whole / "final.safetensors").read_bytes() == (cut / "final.safetensors").read_bytes()
    rounds = [json.loads((folder / "federate.json").read_text())["rounds"] for folder in (whole, cut)]
    assert rounds[0] == rounds[1]


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_an_arm_is_written_from_its_parts() -> None:
    assert write_arm(True, "none", []) == "crop-flip"
    assert write_arm(False, "none", []) == "none"
    assert write_arm(True, "3-1-7", ["gaussian:1e-3"]) == "policy:3-1-7,gaussian:1e-3"
    assert write_arm(False, "3-1-7", []) == "policy:3-1-7,no-base"


def test_local_training_is_that_of_fedavg_unless_chosen() -> None:
    assert choose_local(None, None, None, FEDAVG.optimiser, None, FEDAVG.momentum, FEDAVG.mode) == FEDAVG
    chosen = choose_local(None, 5, 8, "adam", 0.01, 0.0, "eval")
    assert (chosen.steps, chosen.epochs, chosen.batch_size, chosen.optimiser) == (5, None, 8, "adam")


@pytest.mark.parametrize(("text", "rounds"), [("", []), ("10, 1,1", [1, 10])])
def test_rounds_are_read(text: str, rounds: list[int]) -> None:
    assert read_rounds(text, "--capture") == rounds
    with pytest.raises(SettingsError, match="--capture"):
        read_rounds(f"{text},x", "--capture")


def test_the_table_shows_dropped_replies() -> None:
    rounds = [RoundOutcome(number, 10, (), 1.0, 0.5 if number % 2 else None) for number in range(1, 101)]
    rounds[41] = RoundOutcome(42, 9, (Dropped(3, "it replied twice"),), 1.0)
    table = make_table(rounds)
    assert table.row_count == 11
    assert "client 3: it replied twice" in list(table.columns[4].cells)
