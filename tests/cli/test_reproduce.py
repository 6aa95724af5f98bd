"""What a study cannot do is refused before it trains anything or makes a folder."""

import shutil
import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.journal import Journal

MEASURED = Path(__file__).parents[2] / "docs" / "measured"


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["single-transforms", "--images", "99999"], "from 1 to 800"),
        (["scores", "--model", "nope"], "lenet-relu"),
        (["attacks", "--part", "nope"], "published"),
        (["attacks", "--part", "policy", "--model", "lenet"], "choose from lenet-relu"),
        (["defences", "--part", "nope"], "bundled"),
        (["policies-hide", "--arm", "nope"], "crop-flip"),
        (["batches", "--model", "nope"], "lenet-relu"),
        (["batches", "--attack", "nope"], "cocktail-party"),
        (["attackers", "--part", "nope"], "versions"),
        (["defences", "--part", "colour"], "--colour cifar100"),
    ],
)
def test_nonsense_is_refused_at_once(
    words: list[str],
    allowed: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", *words, "--out", str(tmp_path / "study")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert allowed in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """Copy the journals and tables of the documentation."""
    for name in (
        "attacks",
        "attackers",
        "defences",
        "defences-longer",
        "policies-hide",
        "policies-hide-1",
        "told-defences",
        "batches",
    ):
        (tmp_path / name).mkdir()
        for file in (*(MEASURED / name).glob("*.jsonl"), *(MEASURED / name).glob("*.md")):
            shutil.copy(file, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("attacks", ["attacks"]),
        ("defences", ["defences"]),
        ("defences-longer", ["defences", "--attack", "fast", "--steps", "1200"]),
        ("policies-hide", ["policies-hide"]),
        ("attackers", ["attackers"]),
        ("policies-hide-1", ["policies-hide"]),
        ("told-defences", ["told-defences"]),
        ("batches", ["batches"]),
    ],
)
def test_the_tables_of_the_documentation_are_those_of_their_journals(
    folder: str, words: list[str], measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = measured / folder
    assert run(monkeypatch, *words, "--table", "--out", str(out), "--quiet") == 0
    table = f"{words[0]}.md"
    made, kept = ((place / table).read_text() for place in (out, MEASURED / folder))
    # The pictures of the documentation are not in the copy.
    assert made.partition("## Pictures")[0] == kept.partition("## Pictures")[0]
    assert made.partition("## Where")[2] == kept.partition("## Where")[2] != ""


@pytest.mark.parametrize(
    ("folder", "words", "said"),
    [
        ("defences-longer", ["defences"], "it has those of --attack fast --epochs 12 --steps 1200"),
        ("defences-longer", ["defences", "--attack", "fast", "--steps", "1200", "--part", "bundled"], "of bundled"),
        ("defences", ["defences", "--epochs", "3"], "no results of these settings"),
        ("defences", ["attacks"], "is of another study than 'reproduce attacks'"),
        ("attacks", ["defences"], "is of another study than 'reproduce defences'"),
        ("attacks", ["scores"], "scores.jsonl holds no results for a table"),
        ("nowhere", ["attacks"], "journal.jsonl holds no results for a table"),
        ("nowhere", ["defences"], "journal.jsonl holds no results for a table"),
    ],
)
def test_a_table_of_what_is_not_there_is_refused_and_a_good_one_stays(
    folder: str,
    words: list[str],
    said: str,
    measured: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path: path.read_bytes() for path in measured.rglob("*") if path.is_file()}
    assert run(monkeypatch, *words, "--table", "--out", str(measured / folder)) == 2
    shown = capsys.readouterr().err.strip()
    assert said in shown
    assert {path: path.read_bytes() for path in measured.rglob("*") if path.is_file()} == before
    assert not (measured / "nowhere").exists()


def test_an_empty_journal_and_one_of_two_versions_have_no_table(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal, table = (measured / "attacks" / name for name in ("journal.jsonl", "attacks.md"))
    good = table.read_bytes()
    Journal(journal).append({**Journal(journal).read()[0], "audit_version": 2})
    assert run(monkeypatch, "attacks", "--table", "--out", str(journal.parent)) == 2
    assert "253 lines of audit_version 1" in capsys.readouterr().err
    journal.write_text("")
    assert run(monkeypatch, "attacks", "--table", "--out", str(journal.parent)) == 2
    assert "holds no results" in capsys.readouterr().err
    assert table.read_bytes() == good


def test_new_results_are_not_added_to_those_of_another_version(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (measured / "attacks" / "journal.jsonl").read_bytes()
    assert run(monkeypatch, "attacks", "--out", str(measured / "attacks")) == 2
    assert "choose another folder with --out" in capsys.readouterr().err
    assert (measured / "attacks" / "journal.jsonl").read_bytes() == before


def test_one_part_does_not_shrink_the_table(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "attacks", "--table", "--part", "speed", "--out", str(measured / "attacks"), "--quiet") == 0
    text = (measured / "attacks" / "attacks.md").read_text()
    assert [part for part in ("speed", "policy", "published", "budget") if f"## {part}\n" in text] == [
        *("speed", "policy", "published", "budget")
    ]
