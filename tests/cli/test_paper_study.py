"""The published study from the command line: at its smallest scale, whole."""

import shutil
import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.experiments.paper import EXPERIMENTS, LEDGER
from gradveil.experiments.paper import study as cache
from gradveil.experiments.paper.jobs import UnitJob
from gradveil.journal import Journal

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = DOCS / "measured" / "paper"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run everything once."""
    out = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, "all", "--scale", "smoke", "--out", str(out), "--quiet") == 0
    return out


@pytest.mark.slow
def test_everything_runs_at_the_smallest_scale(whole: Path) -> None:
    for name in EXPERIMENTS:
        text = (whole / f"{name}.md").read_text()
        assert "not run" not in text.replace("A cell that was not run says so", ""), name
    ledger = (whole / LEDGER).read_text()
    assert "**holds**" not in ledger
    assert "**fails**" not in ledger
    assert "not run |" not in ledger
    pictures = {path.name for path in whole.glob("*.png")}
    assert {f"figure-{number}.png" for number in (2, 3, 4, 5, 6)} < pictures


@pytest.mark.slow
def test_a_second_run_runs_nothing_and_a_cut_one_comes_to_the_same_ledger(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "cut")
    journal = tmp_path / "cut" / cache.JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    kept = len(lines) - 12
    journal.write_bytes(b"".join(lines[:kept]) + lines[kept][:40])
    ran: list[str] = []
    real = UnitJob.run

    def counted(self: UnitJob, report: object) -> dict[str, object]:
        ran.append(self.unit.key)
        return real(self, report)  # type: ignore[arg-type]

    monkeypatch.setattr(UnitJob, "run", counted)
    assert run(monkeypatch, "all", "--scale", "smoke", "--out", str(tmp_path / "cut"), "--quiet") == 0
    assert len(ran) == 12
    for name in (LEDGER, "table-1a.md", "claim-2.md"):
        assert (tmp_path / "cut" / name).read_text() == (whole / name).read_text()
    assert run(monkeypatch, "all", "--scale", "smoke", "--out", str(tmp_path / "cut"), "--quiet") == 0
    assert len(ran) == 12


def test_one_experiment_can_be_run_and_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    assert run(monkeypatch, "figure-3", "--out", str(out)) == 0
    page = (out / "figure-3.md").read_text()
    assert not (out / LEDGER).exists()
    (out / "figure-3.md").unlink()
    before = (out / cache.JOURNAL).read_bytes()
    ledger = tmp_path / "ledger.md"
    assert run(monkeypatch, "figure-3", "--table", "--out", str(out), "--ledger", str(ledger)) == 0
    assert (out / "figure-3.md").read_text() == page
    assert (out / cache.JOURNAL).read_bytes() == before
    assert "(study/claim-1.md)" in ledger.read_text()
    assert "figure-3.md" in capsys.readouterr().out


def test_a_dry_run_prints_the_plan_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    assert run(monkeypatch, "figure-3", "--dry-run", "--out", str(out)) == 0
    shown = capsys.readouterr().out
    assert "figure-3" in shown
    assert "core-hours" in shown
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all", "--scale", "huge"], "cpu, paper, smoke"),
        (["table-1a", "--table"], "holds no results for a table"),
        (["table-5", "--scale", "cpu"], "name their folder with --data-root"),
    ],
)
def test_nonsense_is_refused_in_one_line(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *words, "--out", str(tmp_path / "study")) == 2
    assert said in capsys.readouterr().err


def test_the_journal_of_another_study_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(tmp_path / cache.JOURNAL).append({"cell": {"part": "speed"}, "rows": []})
    assert run(monkeypatch, "figure-3", "--out", str(tmp_path)) == 2
    assert "is of another study" in capsys.readouterr().err


@pytest.mark.skipif(not MEASURED.exists(), reason="no results are committed yet")
def test_the_pages_of_the_documentation_are_those_of_their_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(MEASURED, docs / "measured" / "paper")
    for path in (docs / "measured" / "paper").glob("*.md"):
        path.unlink()
    out, ledger = docs / "measured" / "paper", docs / LEDGER
    words = ("--scale", "cpu", "--table", "--out", str(out), "--ledger", str(ledger), "--quiet")
    assert run(monkeypatch, "all", *words) == 0
    assert ledger.read_text() == (DOCS / LEDGER).read_text()
    committed = {path.name: path.read_text() for path in MEASURED.glob("*.md")}
    assert {path.name: path.read_text() for path in out.glob("*.md")} == committed
