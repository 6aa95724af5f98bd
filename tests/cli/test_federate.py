"""`gradveil federate` as a person uses it: options, files, errors, and a kill in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from gradveil.cli import federate, main
from gradveil.cli.arms import write_arm
from gradveil.cli.federate import choose_local, read_rounds
from gradveil.cli.federate_tables import make_table
from gradveil.errors import SettingsError
from gradveil.federated import FEDAVG, Dropped, RoundOutcome
from gradveil.federated.state import read_state
from gradveil.folders import only_command
from gradveil.training import load_checkpoint

QUICK = ("--model", "lenet", "--clients", "4", "--batch-size", "4", "--seed", "1")


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "federate", *QUICK, *options])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_what_a_run_left_has_a_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "resume.safetensors").write_bytes(b"half")
    (tmp_path / "journal.jsonl").touch()
    for option in ("--out", "--resume"):
        assert run(monkeypatch, "--rounds", "1", option, str(tmp_path)) == 2
        assert "--overwrite" in capsys.readouterr().err
    with only_command(tmp_path, "federate"):
        assert run(monkeypatch, "--rounds", "1", "--out", str(tmp_path), "--overwrite") == 2
    assert "another command is at work" in capsys.readouterr().err
    assert run(monkeypatch, "--rounds", "1", "--out", str(tmp_path), "--overwrite") == 0


def test_a_changed_or_shortened_journal_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--rounds", "2", "--out", str(tmp_path)) == 0
    (tmp_path / "federate.json").unlink()
    journal = tmp_path / "journal.jsonl"
    whole = journal.read_text()
    capsys.readouterr()
    for text, message in (
        (whole.replace('"valid": 4', '"valid": 3', 1), "line 1, was changed"),
        (whole.splitlines(keepends=True)[1], "lacks rounds"),
    ):
        journal.write_text(text)
        assert run(monkeypatch, "--rounds", "2", "--resume", str(tmp_path)) == 2
        assert message in capsys.readouterr().err
    journal.write_text(whole)
    assert run(monkeypatch, "--rounds", "2", "--resume", str(tmp_path)) == 0


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
        (("--resume", "nowhere"), "leave out --out"),
        (("--workers", "0"), "0 workers"),
        (("--clients", "6000"), "6000 participants for 5000 images"),
        (("--partition", "classes:50"), "classes:50 does not work"),
        (("--learning-rate", "0", "--algorithm", "fedavg"), "must be above 0"),
        (("--observe", "1", "--observe-steps", "0"), "give 1 or more"),
        (("--server-momentum", "1"), "from 0 to below 1"),
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
    assert run(monkeypatch, "--resume", str(cut)) == 0
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


def test_the_server_attacks_a_fedavg_of_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    options = ("--algorithm", "fedavg", "--local-steps", "5", "--batch-size", "8", "--local-momentum", "0", "--no-base")
    attack = ("--observe", "1", "--observe-attack", "fast", "--observe-steps", "2")
    assert run(monkeypatch, *options, "--rounds", "2", "--clients", "2", *attack, "--out", str(out)) == 0
    capsys.readouterr()
    capsule = json.loads((out / "capsules" / "round-0001-client-00.json").read_text())
    assert capsule["images"] == 40
    report = json.loads((out / "observation" / "audit.json").read_text())
    assert len(report["rows"]) == 80
    assert not any("differs from the released one" in notice for notice in report["notices"])


RING = "import gradveil.federated.ring as ring, gradveil.cli as cli; ring.SAVE_SECONDS = 0.0; cli.main()"


@pytest.mark.slow
@pytest.mark.parametrize("topology", ["ring", "full"])
def test_a_killed_run_without_a_server_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topology: str
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    options = ("--rounds", "60", "--clients", "3", "--topology", topology)
    assert run(monkeypatch, *options, "--out", str(whole), "--quiet") == 0
    command = [sys.executable, "-c", RING, "federate", *QUICK, *options, "--out", str(cut)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    end = time.monotonic() + 60
    while time.monotonic() < end and count_lines(cut / "journal.jsonl") < 20:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = int(read_state(cut / "resume.safetensors")[0]["round"])
    assert 19 <= done < 60
    before = (cut / "journal.jsonl").read_bytes()
    shown: list[int] = []
    monkeypatch.setattr(federate, "rounds_bar", lambda _: nullcontext(lambda outcome, _: shown.append(outcome.round)))
    assert run(monkeypatch, *options, "--resume", str(cut)) == 0
    assert shown == list(range(done + 1, 61)), "finished rounds do not take place again"
    assert (whole / "final.safetensors").read_bytes() == (cut / "final.safetensors").read_bytes()
    first = b"".join(before.splitlines(keepends=True)[:done])
    assert (cut / "journal.jsonl").read_bytes().startswith(first)
    rounds = [json.loads((folder / "federate.json").read_text())["rounds"] for folder in (whole, cut)]
    assert rounds[0] == rounds[1]
