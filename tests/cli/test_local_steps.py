"""`gradveil reproduce local-steps`: the tables come from the journal, and wrong options end in one line."""

import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.experiments.local_steps import JOURNAL

MEASURED = Path(__file__).parents[2] / "docs" / "measured" / "local-steps"


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", "local-steps", *options])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_committed_journal_gives_the_committed_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / JOURNAL).write_bytes((MEASURED / JOURNAL).read_bytes())
    assert run(monkeypatch, "--table", "--out", str(tmp_path), "--quiet") == 0
    assert (tmp_path / "local-steps.md").read_text() == (MEASURED / "local-steps.md").read_text()


@pytest.mark.parametrize(
    ("options", "reason"), [(("--part", "nope"), "unknown part 'nope'"), (("--table",), "holds no results")]
)
def test_wrong_options_end_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    reason: str,
) -> None:
    assert run(monkeypatch, *options, "--out", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
