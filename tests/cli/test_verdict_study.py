"""`gradveil reproduce verdict` as a person uses it."""

import json
import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.journal import Journal
from tests.experiments.test_verdict_tables import make_pool


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", "verdict", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def write_journal(folder: Path) -> None:
    line = {"part": "power", "trial": {"data": "sample", "seed": 0}, **make_pool(["leaks", "some"])}
    Journal(folder / "journal.jsonl").append(line)


def test_the_table_is_made_of_the_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_journal(tmp_path)
    assert run(monkeypatch, "--table", "--out", str(tmp_path)) == 0
    assert "50% / 100%" in (tmp_path / "verdict.md").read_text()
    assert json.loads((tmp_path / "verdict.json").read_text())["settings"]["parts"] == ["power"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--part", "nothing"], "false findings"),
        (["--table", "--part", "floors"], "no table was written"),
    ],
)
def test_a_wrong_part_writes_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str
) -> None:
    write_journal(tmp_path)
    assert run(monkeypatch, *words, "--out", str(tmp_path)) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "verdict.md").exists()


def test_an_empty_folder_has_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "--table", "--out", str(tmp_path)) == 2
    assert "name its folder with --out" in " ".join(capsys.readouterr().err.split())
