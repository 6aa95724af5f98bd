"""`gradveil audit` as a person uses it: what it writes, what it prints, what it refuses."""

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from gradveil import __version__
from gradveil.cli import main
from gradveil.data import fashion_mnist_sample

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


def test_one_seed_gives_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        assert run(monkeypatch, "audit", *TINY, "--seed", "3", "--quiet", "--out", str(tmp_path / name)) == 0
    assert without_times(tmp_path / "a/audit.json") == without_times(tmp_path / "b/audit.json")


def test_the_page_needs_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "audit", *TINY, "--quiet", "--out", str(tmp_path / "a")) == 0
    page = (tmp_path / "a/report.html").read_text()
    addresses = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert len(addresses) == 2 * 2 * 3
    assert all(address.startswith("data:image/png;base64,") for address in addresses)
    assert "http" not in page
    assert "<script" not in page


def test_json_is_all_that_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "audit", *TINY, "--json", "--out", str(tmp_path / "a")) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == json.loads((tmp_path / "a/audit.json").read_text())
    assert printed.err == ""


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
        (("--images", "-4"), "1 or more"),
        (("--images", "1001"), "fewer"),
        (("--phase", "later"), "init, step-N, epoch-N or final"),
        (("--phase", "epoch-9"), "epoch-3"),
        (("--labels", "guessed"), "known or hidden"),
        (("--device", "abacus"), "auto, cpu"),
        (("--seed", "-1"), "from 0 to"),
        (("--workers", "0"), "1 or more"),
        (("--epochs", "0"), "1 or more"),
        (("--steps", "0"), "1 or more"),
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
