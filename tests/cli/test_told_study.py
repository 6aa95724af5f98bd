"""`gradveil reproduce told-defences` as a person uses it."""

import json
import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.journal import Journal
from tests.experiments.test_told_tables import NONE, TOLD, UNTOLD


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", "told-defences", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_table_is_made_of_the_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for entry in (NONE, TOLD, UNTOLD):
        Journal(tmp_path / "journal.jsonl").append(entry)
    assert run(monkeypatch, "--table", "--out", str(tmp_path)) == 0
    assert "+3.5" in (tmp_path / "told-defences.md").read_text()
    assert len(json.loads((tmp_path / "told-defences.json").read_text())["trials"]) == 3


def test_an_unknown_arm_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "--arm", "prune:70", "--out", str(tmp_path)) == 2
    assert "oasis,no-base" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
