"""`gradveil search` as a person uses it: files, status, errors, and a kill in the middle."""

import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gradveil import data
from gradveil.cli import main
from gradveil.errors import MissingExtraError
from gradveil.folders import only_command
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import save_checkpoint
from gradveil.workers import cluster

QUICK = (
    *("--candidates", "12", "--keep", "3", "--images", "16", "--quadrature", "trapezoid-5"),
    *("--accuracy-threshold", "-18"),
)
ALONE = (*QUICK, "--workers", "1")


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Command:
    """Run `gradveil` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "200")

    def __call__(self, *options: str | Path) -> Outcome:
        self.monkeypatch.setattr(sys, "argv", ["gradveil", *map(str, options)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Outcome(code, *self.capsys.readouterr())


@pytest.fixture
def gradveil(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a checkpoint of a model as it is drawn."""
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec("lenet", sample.shape, sample.classes, sample.mean, sample.std)
    path = tmp_path_factory.mktemp("weights") / "drawn.safetensors"
    save_checkpoint(path, spec.build(generator(1, "model")).state_dict(), spec, {})
    return path


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a data set of a few images of the sample."""
    sample, folder = data.load("fashion-mnist-sample"), tmp_path_factory.mktemp("few")
    for name, part in {"train": sample.train, "test": sample.test}.items():
        images, labels = part.images[:60, 0].numpy(), part.labels[:60].numpy()
        np.savez(folder / f"{name}.npz", images=images, labels=labels)
    return f"npz:{folder}/train.npz,{folder}/test.npz"


@pytest.fixture(scope="module")
def given(few: str, weights: Path) -> tuple[str, ...]:
    """Name the data and the weights."""
    return "--data", few, "--checkpoint", str(weights)


def same(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what differs from run to run."""
    return {key: value for key, value in record.items() if key not in ("environment", "processor_seconds")}


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "search.json").read_text())
    return record


def test_everything_is_written_and_can_be_looked_at(gradveil: Command, few: str, tmp_path: Path) -> None:
    out, options = tmp_path / "run", ("--data", few, "--model", "lenet")
    found = gradveil("search", *ALONE, *options, "--epochs", "2", "--out", out)
    assert found.code == 0, found.err
    files = {"journal.jsonl", "search.json", "policies.json", "index.html", "model"}
    assert {path.name for path in out.iterdir()} == files
    record = record_of(out)
    training = record["settings"]["training"]
    assert (training["recipe"], training["fraction"], training["epochs"]) == ("paper", 1.0, 2)
    assert len(record["policies"]) == 3
    assert all({"policy", "privacy", "accuracy"} <= set(entry) for entry in record["policies"])
    assert record["policies"][0]["policy"] in found.out
    policies = json.loads((out / "policies.json").read_text())
    assert policies["hybrid"]["policy"] == record["hybrid"]
    page = (out / "index.html").read_text()
    assert 'http-equiv="refresh"' not in page  # it is done: nothing to load again
    assert not re.search(r"https?://|<script|src=|href=", page)
    assert escape(record["policies"][0]["readable"]) in page
    status = gradveil("search", "--status", out)
    assert status.code == 0
    assert "finished" in status.out
    assert json.loads(gradveil("search", "--status", out, "--json").out)["finished"] is True
    # S_pri of the best one is what `gradveil score` prints for the same images.
    scored = gradveil(
        *("score", record["policies"][0]["policy"], "--checkpoint", out / "model" / "final.safetensors"),
        *("--data", few, "--images", "16", "--quadrature", "trapezoid-5", "--batches", "1", "--json"),
    )
    line = json.loads(scored.out)["policies"][1]
    assert line["privacy"]["mean"] == pytest.approx(record["policies"][0]["privacy"], rel=1e-12)
    assert line["accuracy"] == record["policies"][0]["accuracy"]
    assert "--overwrite" in gradveil("search", *ALONE, *options, "--out", out).err


def test_json_alone_is_printed_and_another_seed_finds_others(
    gradveil: Command, given: tuple[str, ...], tmp_path: Path
) -> None:
    found = gradveil("search", *ALONE, *given, "--json", "--out", tmp_path / "one")
    assert json.loads(found.out) == record_of(tmp_path / "one")
    other = ("--seed", "1", "--quiet", "--strategy", "random", "--select", "mean-variance")
    assert gradveil("search", *ALONE, *given, *other, "--out", tmp_path / "two").out == ""
    first, second = (record_of(tmp_path / name) for name in ("one", "two"))
    assert [entry["policy"] for entry in first["policies"]] != [entry["policy"] for entry in second["policies"]]
    assert first["weights"] == second["weights"] == first["settings"]["weights"]


def test_the_best_are_really_attacked_and_trained(gradveil: Command, given: tuple[str, ...], tmp_path: Path) -> None:
    attack = ("--validate-attack", "fast", "--validate-steps", "2", "--validate-images", "1")
    options = (*given, "--validate", "1", *attack)
    found = gradveil("search", *ALONE, *options, "--out", tmp_path / "run")
    assert found.code == 0, found.err
    control, best = record_of(tmp_path / "run")["validation"]
    assert (control["policy"], best["policy"]) == ("none", record_of(tmp_path / "run")["policies"][0]["policy"])
    assert control["privacy"] > best["privacy"]
    assert 0 <= best["test_accuracy"] <= 1
    assert best["advantage"] is not None
    assert "Really attacked" in found.out
    assert "Really attacked" in (tmp_path / "run" / "index.html").read_text()
    lines = (tmp_path / "run" / "journal.jsonl").read_bytes()
    again = gradveil("search", *ALONE, *options, "--resume", tmp_path / "run")
    assert again.code == 0
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == lines


class Silent(http.server.BaseHTTPRequestHandler):
    """Answer every request with an error, and say nothing on the console."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def no_cluster() -> Iterator[str]:
    """Serve something that is no Ray cluster."""
    with http.server.HTTPServer(("127.0.0.1", 0), Silent) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--keep", "13"), "keep 13 of 12"),
        (("--candidates", "0"), "1 or more"),
        (("--length", "4"), "from 1 to 3"),
        (("--images", "0"), "1 or more"),
        (("--strategy", "magic"), "racing"),
        (("--score", "beauty"), "s-pri"),
        (("--select", "luck"), "mean-variance"),
        (("--accuracy-threshold", "much"), "25%"),
        (("--quadrature", "simpson-3"), "trapezoid"),
        (("--workers", "0"), "1 or more"),
        (("--error", "2"), "between 0 and 1"),
        (("--validate", "-1"), "0 policies or more"),
        (("--validate", "1", "--validate-attack", "magic"), "standard"),
        (("--validate", "1", "--validate-images", "5000"), "attack fewer"),
        (("--model", "lennet"), "lenet"),
        (("--checkpoint", "missing.safetensors"), "cannot be read"),
        (("--resume", "nowhere"), "leave out --out"),
        (("--ray", "nowhere"), "HOST:PORT"),
        (("--ray", "ray://127.0.0.1:1"), "HOST:PORT"),
    ],
)
def test_nonsense_ends_in_one_line_and_leaves_nothing(
    gradveil: Command, given: tuple[str, ...], tmp_path: Path, options: tuple[str, ...], hint: str
) -> None:
    model = given[:2] if "--model" in options or "--checkpoint" in options else given
    found = gradveil("search", *ALONE, *model, *options, "--out", tmp_path / "run")
    assert found.code == 2
    assert found.err.startswith("gradveil: ")
    assert found.err.count("\n") == 1
    assert hint in found.err
    assert not (tmp_path / "run").exists()


def test_an_address_without_a_cluster_is_refused_soon(
    gradveil: Command, given: tuple[str, ...], tmp_path: Path, no_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    for address, hint in ((f"127.0.0.1:{port}", "no Ray cluster answers"), (no_cluster, "is no Ray cluster")):
        found = gradveil("search", *QUICK, *given, "--ray", address, "--out", tmp_path / "run")
        assert (found.code, found.err.count("\n")) == (2, 1)
        assert hint in found.err
    assert time.monotonic() - started < 30

    def missing(package: str, extra: str) -> None:
        raise MissingExtraError(package, extra)

    monkeypatch.setattr(cluster, "import_extra", missing)
    found = gradveil("search", *QUICK, *given, "--ray", no_cluster, "--out", tmp_path / "run")
    assert "pip install 'gradveil[ray]'" in found.err
    assert not (tmp_path / "run").exists()


def test_a_journal_of_another_study_is_left_alone(gradveil: Command, given: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "run"
    # No candidate reaches it: the search ends, and what it learnt is kept.
    found = gradveil("search", *ALONE, *given, "--accuracy-threshold", "-1.5", "--out", out)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "out of reach" in found.err
    assert "median" in found.err
    before = (out / "journal.jsonl").read_bytes()
    assert "go on with --resume" in gradveil("search", *ALONE, *given, "--out", out).err
    found = gradveil("search", *ALONE, *given, "--accuracy-threshold", "-18", "--resume", out)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "accuracy_threshold was -1.5 and is -18" in found.err
    (out / "notes").mkdir()
    assert gradveil("search", "--status", out / "notes").code == 2
    assert (out / "journal.jsonl").read_bytes() == before
    # Nobody holds its lock: it was stopped.
    shown = gradveil("search", "--status", out).out
    assert shown.startswith("stopped, ")
    assert f"Go on with: gradveil search --resume {out}" in shown
    status = json.loads(gradveil("search", "--status", out, "--json").out)
    assert (status["at_work"], status["resume"]) == (False, f"gradveil search --resume {out}")
    with only_command(out, "search"):
        assert gradveil("search", "--status", out).out.startswith("at work")
    assert 'http-equiv="refresh"' in (out / "index.html").read_text()


START = "from gradveil.cli import main; main()"
LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)); " + START


def start(code: str, *options: str | Path) -> "subprocess.Popen[str]":
    """Start the command as a process, in a session of its own so that its workers can be found."""
    return subprocess.Popen(
        [sys.executable, "-c", code, "search", *map(str, options)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def test_a_full_disk_ends_in_one_line_and_the_search_goes_on_later(
    gradveil: Command, given: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = start(LIMITED, *ALONE, *given, "--quiet", "--out", out)
    _, error = process.communicate()
    assert process.returncode == 2
    assert error.startswith("gradveil: cannot write ")
    assert error.count("\n") == 1
    assert (out / "journal.jsonl").read_bytes().endswith(b"}\n")
    assert gradveil("search", "--resume", out).code == 0
    assert len(record_of(out)["policies"]) == 3


def processes_of(session: int) -> list[int]:
    """Find the processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
def test_a_killed_search_goes_on_to_the_same_bits(gradveil: Command, given: tuple[str, ...], tmp_path: Path) -> None:
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    process = start(START, *QUICK, "--workers", "2", *given, "--quiet", "--out", cut)
    while not (cut / "journal.jsonl").exists() or (cut / "journal.jsonl").read_bytes().count(b"\n") < 4:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (cut / "search.json").exists()
    assert (cut / "index.html").exists()
    deadline = time.monotonic() + 30
    while processes_of(process.pid):
        assert time.monotonic() < deadline, "workers outlive their driver"
        time.sleep(0.05)
    before = (cut / "journal.jsonl").read_bytes()
    assert gradveil("search", "--resume", cut).code == 0
    assert (cut / "journal.jsonl").read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    assert gradveil("search", *ALONE, *given, "--out", whole).code == 0
    assert same(record_of(cut)) == same(record_of(whole))
