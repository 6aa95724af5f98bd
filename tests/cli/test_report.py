"""`gradveil report`, as the shell runs it."""

import sys
from pathlib import Path

import pytest

from gradveil import cli
from gradveil.reports import write_audit
from tests.reports.audit_records import CELLS, make_pictures, make_record


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run the command line as the shell would; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gradveil", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def make_folder(path: Path, seed: int = 0) -> Path:
    record = make_record(cells=CELLS[:2], seed=seed)
    path.mkdir()
    write_audit(path, record, make_pictures(record))
    return path


def test_a_page_is_drawn_again_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path / "a")
    written = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    (folder / "audit.csv").unlink()
    assert run(monkeypatch, folder) == 0
    assert (folder / "report.html").read_bytes() == written
    assert (folder / "report.html").stat().st_mode & 0o777 == 0o600
    assert run(monkeypatch, folder, "--verify") == 0


def test_a_page_without_originals_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path / "a")
    assert run(monkeypatch, folder, "--no-pictures", "--out", tmp_path / "new" / "bare.html") == 0
    assert "data:image" not in (tmp_path / "new" / "bare.html").read_text()
    assert "data:image" in (folder / "report.html").read_text()
    assert run(monkeypatch, folder, "--no-originals", "--out", tmp_path / "new" / "rebuilt.html") == 0
    rebuilt = (tmp_path / "new" / "rebuilt.html").read_text()
    assert "data:image" in rebuilt
    assert "original, x" not in rebuilt
    assert run(monkeypatch, folder, "--out", tmp_path / "other") == 0
    assert (tmp_path / "other" / "report.html").exists()


def test_several_folders_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = make_folder(tmp_path / "a"), make_folder(tmp_path / "b", seed=1)
    assert run(monkeypatch, first, second) == 0
    assert capsys.readouterr().out == "comparison.html\n"
    assert "2 audits compared" in (tmp_path / "comparison.html").read_text()
    assert run(monkeypatch, first, second, "--quiet", "--out", tmp_path / "c") == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "c" / "comparison.html").exists()
    assert run(monkeypatch, first, tmp_path / "b" / ".." / "a") == 2
    assert "name each folder once" in capsys.readouterr().err


def test_verify_says_in_one_line_whether_a_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = make_folder(tmp_path / "good"), make_folder(tmp_path / "bad")
    assert run(monkeypatch, "--verify", good) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert f"{good} holds: audit.json is unchanged, report.html, audit.csv, pictures.safetensors belong to it" in line
    (bad / "report.html").write_text((good / "report.html").read_text().replace("leaks", "holds", 1))
    assert run(monkeypatch, "--verify", bad, good) == 2
    ended = capsys.readouterr()
    assert ended.out == line
    assert ended.err.count("\n") == 1
    assert ended.err.startswith(f"gradveil: does not hold: {bad / 'report.html'} was changed")


def test_verify_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "a")
    assert run(monkeypatch, folder, "--verify", "--out", tmp_path / "x.html") == 2
    assert "--verify writes nothing" in capsys.readouterr().err


def test_other_files_are_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "a")
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    assert run(monkeypatch, folder, "--out", mine) == 2
    assert "is not a page of gradveil" in capsys.readouterr().err
    assert mine.read_text() == "<p>mine</p>"
    assert run(monkeypatch, folder, "--out", folder / "audit.json") == 2
    assert run(monkeypatch, folder, "--verify") == 0


def test_a_folder_without_an_audit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path) == 2
    assert "holds no audit.json" in capsys.readouterr().err
