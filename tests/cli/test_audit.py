"""`gradveil audit` as a person uses it: what it writes, what it prints, what it refuses."""

import csv
import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gradveil import __version__
from gradveil.cli import main
from gradveil.data import fashion_mnist_sample, load
from gradveil.folders import only_command
from gradveil.models import ModelSpec
from gradveil.rng import generator

WRITTEN = {"report.html", "audit.json", "audit.csv"}
TINY = ("--images", "2", "--steps", "2", "--phase", "init", "--defence", "none", "--policy", "3-1-7", "--workers", "1")


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def without_times(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    record["environment"].pop("finished")
    for key in ("sha256_of_content", "command_line"):
        record.pop(key)
    for entry in (*record["rows"], *record["summaries"]):
        entry.pop("seconds")
    return record


def test_writes_everything_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(monkeypatch, "audit", *TINY, "--out", str(tmp_path / "a")) == 0
    printed = capsys.readouterr().out
    for name in ("report.html", "audit.json", "audit.csv"):
        assert str(tmp_path / "a" / name) in printed
        assert (tmp_path / "a" / name).stat().st_size > 0
    assert len(list((tmp_path / "a" / "pictures").glob("*.png"))) == 2
    record = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert {row["arm"] for row in record["rows"]} == {"none", "policy:3-1-7"}
    with (tmp_path / "a" / "audit.csv").open() as stream:
        assert [row["psnr_transformed"] for row in csv.DictReader(stream)] == [
            str(row["psnr_transformed"]) for row in record["rows"]
        ]


@pytest.mark.parametrize("room", [10, 12_000, 30_000])
def test_an_audit_out_of_space_has_a_way_on(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ("audit", "--images", "2", "--steps", "2", "--phase", "init", "--defence", "none", "--workers", "1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        assert run(monkeypatch, *words, "--out", str(out)) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    shown = capsys.readouterr().err
    assert shown.startswith("gradveil: cannot write")
    assert shown.count("\n") == 1
    if out.exists():
        assert run(monkeypatch, *words, "--out", str(out)) == 2
        assert f"go on with --resume {out}, start again with --overwrite" in capsys.readouterr().err
        assert run(monkeypatch, "audit", "--resume", str(out), "--workers", "1") == 0
    else:
        assert run(monkeypatch, *words, "--out", str(out)) == 0
    assert {path.name for path in out.iterdir()} == {*WRITTEN, "pictures", "pictures.safetensors"}


@pytest.mark.parametrize("left", ["work", "pictures.safetensors"])
def test_what_an_audit_left_can_be_overwritten(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / left).mkdir() if left == "work" else (tmp_path / left).write_bytes(b"half")
    words = ("audit", "--images", "1", "--steps", "1", "--phase", "init", "--defence", "none", "--workers", "1")
    assert run(monkeypatch, *words, "--out", str(tmp_path)) == 2
    assert "--overwrite" in capsys.readouterr().err
    with only_command(tmp_path, "audit"):
        assert run(monkeypatch, *words, "--out", str(tmp_path), "--overwrite") == 2
    assert "another command is at work" in capsys.readouterr().err
    assert run(monkeypatch, *words, "--out", str(tmp_path), "--overwrite") == 0


def test_the_attacker_is_told_unless_asked_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words, told in (("a", (), True), ("b", ("--untold",), False)):
        assert run(monkeypatch, "audit", *TINY, *words, "--quiet", "--out", str(tmp_path / name)) == 0
        record = json.loads((tmp_path / name / "audit.json").read_text())
        assert record["settings"]["knows_defence"] is told
        assert bool(record["arms"]["policy:3-1-7"]["used"]) is told
        assert ("is told which defence" in record["threat_model"]) is told


def test_the_table_fits_80_columns_and_sentences_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--defence", "crop-flip,gaussian:1e-3,prune:70", "--canary", "1", "--out", str(tmp_path))
    assert run(monkeypatch, "audit", *TINY, *words) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.split(str(tmp_path))[0].splitlines())) <= 80
    flat = " ".join(printed.split())
    record = json.loads((tmp_path / "audit.json").read_text())
    for sentence in (record["verdict"], record["threat_model"]):
        assert sentence in flat
    assert "Expected number of false findings in this audit: at most 0.1." in flat
    rates = [one["identification"] for one in record["summaries"]]
    assert all(f"{rate['found']}/{rate['images']}" in flat and f"1/{rate['candidates']}" in flat for rate in rates)
    assert f"Canaries read (by chance {1 / 256:.2%} of them would be)" in flat
    assert len(record["canaries"]) == 3


def test_presets_are_recorded_and_overridden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--preset", "standard", "--attack", "fast", "--epsilon", "2", "--delta", "0.2", "--gamma", "0.01")
    out = tmp_path / "a"
    assert run(monkeypatch, "audit", *TINY, *words, "--all-images", "--quiet", "--out", str(out)) == 0
    record = json.loads((out / "audit.json").read_text())
    settings = record["settings"]
    assert settings["preset"].startswith("standard-1 with another ")
    assert settings["rule"] == {"epsilon": 2.0, "delta": 0.2, "gamma": 0.01, "error": 0.05}
    assert settings["stop_early"] is False
    assert record["command_line"].startswith("gradveil audit --images 2")


@pytest.mark.parametrize(
    ("words", "arms", "control"),
    [
        (("--defence", "crop-flip"), ["none", "crop-flip"], True),
        (("--defence", "crop-flip", "--defence", "none"), ["none", "crop-flip"], False),
        (("--defence", "crop-flip", "--no-control"), ["crop-flip"], False),
    ],
)
def test_the_control_comes_first(
    words: tuple[str, ...], arms: list[str], control: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--images", "2", "--steps", "2", "--phase", "init", "--workers", "1", "--out", str(tmp_path / "a"))
    assert run(monkeypatch, "audit", *options, *words, "-q") == 0
    settings = json.loads((tmp_path / "a/audit.json").read_text())["settings"]
    assert (settings["arms"], settings["control"]) == (arms, control)


@pytest.mark.slow
def test_a_leak_above_the_limit_ends_in_3_after_everything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leaky = ("--images", "4", "--steps", "200", "--phase", "init", "--defence", "clip:1", "--workers", "1")
    for limit, code in (("3", 3), ("200", 0)):
        out = tmp_path / limit
        assert run(monkeypatch, "audit", *leaky, "--fail-above", limit, "--out", str(out)) == code
        assert (out / "audit.json").exists()
        assert not (out / "work").exists()
        assert ("a leak above 3 dB: clip:1, init, fast: " in capsys.readouterr().err) == (code == 3)


def test_one_seed_gives_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        assert run(monkeypatch, "audit", *TINY, "--seed", "3", "--quiet", "--out", str(tmp_path / name)) == 0
    assert without_times(tmp_path / "a/audit.json") == without_times(tmp_path / "b/audit.json")


def test_the_files_belong_together_and_nothing_else_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "audit", *TINY, "--quiet", "--out", str(tmp_path / "a")) == 0
    files = {"report.html", "audit.json", "audit.csv", "pictures.safetensors", "pictures"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == files
    assert run(monkeypatch, "report", "--verify", str(tmp_path / "a")) == 0
    assert "belong to it" in capsys.readouterr().out
    page = (tmp_path / "a/report.html").read_text()
    addresses = re.findall(r"""\s(?:src|href)=["']?([^"'\s>]+)""", page)
    assert addresses
    assert not [address for address in addresses if not address.startswith(("data:", "#"))]


def test_json_is_all_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "audit", *TINY, "--json", "--out", str(tmp_path / "a")) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == json.loads((tmp_path / "a/audit.json").read_text())
    assert printed.err == ""


def test_trained_weights_are_attacked_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plain state_dict: the phase is `given`, the loss plain cross-entropy, and the page never says untrained."""
    sample = load("fashion-mnist-sample")
    spec = ModelSpec("lenet-relu", sample.shape, sample.classes, sample.mean, sample.std)
    torch.save(spec.build(generator(3, "model")).state_dict(), tmp_path / "mine.pt")
    words = ("--images", "2", "--steps", "2", "--defence", "none", "--workers", "1", "--out", str(tmp_path / "a"))
    assert run(monkeypatch, "audit", "--checkpoint", str(tmp_path / "mine.pt"), "--model", "lenet-relu", *words) == 0
    record = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert [one["phase"] for one in record["summaries"]] == ["given"]
    assert record["settings"]["local"]["loss"] == "cross-entropy"
    assert "the given weights classify" in " ".join(capsys.readouterr().out.split())
    assert "untrained" not in (tmp_path / "a" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--data", "fashion-mist"), "fashion-mnist"),
        (("--model", "lennet"), "lenet"),
        (("--attack", "magic"), "adam-cosine"),
        (("--policy", "99-1"), "from 0 to 49"),
        (("--policy", "3--1"), "3-1-7"),
        (("--policy", ""), "none"),
        (("--defence", "hope"), "policy"),
        (("--images", "0"), "1 or more"),
        (("--images", "-4"), "give a number"),
        (("--images", "1001,"), "other places"),
        (("--stps", "3"), "did you mean --steps?; see gradveil audit --help"),
        (("--data", "src"), "write folder:src"),
        (("--attack", "no_such:thing"), "cannot be imported"),
        (("--defence", "math:pi"), "'math:pi' is float"),
        (("--resume", "nowhere"), "leave out --out"),
        (("--phase", "later"), "init, step-N, epoch-N or final"),
        (("--phase", "epoch-9"), "epoch-3"),
        (("--phase", "given"), "weights that come from elsewhere"),
        (("--checkpoint", "nowhere.pt"), "no such file"),
        (("--checkpoint", "README.md"), "name the model with --model"),
        (("--checkpoint", "nowhere.pt", "--model", "lenet"), "no such file"),
        (("--checkpoint", "nowhere.pt", "--phase", "final"), "leave out --phase"),
        (("--loss", "hope"), "cross-entropy"),
        (("--labels", "guessed"), "known or hidden"),
        (("--device", "abacus"), "auto, cpu"),
        (("--seed", "-1"), "from 0 to"),
        (("--workers", "0"), "1 or more"),
        (("--epochs", "0"), "1 or more"),
        (("--steps", "0"), "1 or more"),
        (("--budget", "-1"), "more than 0"),
        (("--budget", "1", "--steps", "3"), "give one of them"),
        (("--preset", "quik"), "quick"),
        (("--epsilon", "0"), "above 0"),
        (("--delta", "2"), "between 0 and 1"),
        (("--canary", "-1"), "0 or more"),
        (("--fail-above", "-3"), "decibels from 0"),
        (("--ray", "nowhere"), "HOST:PORT"),
        (("--together",), "name them with --capsule"),
    ],
)
def test_nonsense_ends_in_one_line(
    words: tuple[str, ...],
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "audit", *words, "--out", str(tmp_path / "a")) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("gradveil: ")
    assert printed.err.count("\n") == 1
    assert hint in printed.err
    assert not (tmp_path / "a").exists()


def test_another_run_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for options in ((), ("--overwrite",)):
        assert run(monkeypatch, "audit", *TINY, *options, "--out", str(tmp_path)) == 2
        assert "--out" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_an_output_that_is_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, "audit", *TINY, "--out", str(tmp_path / "file" / "a")) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_damaged_sample_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fashion_mnist_sample, "SHA256", "0" * 64)
    assert run(monkeypatch, "audit", *TINY, "--out", str(tmp_path / "a")) == 2
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_the_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"gradveil {__version__}\n"
