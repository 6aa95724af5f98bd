"""The folders of studies: one command at a time works there."""

import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.folders import LOCK, only_command

MEASURED = Path(__file__).parents[2] / "docs" / "measured"


@pytest.mark.parametrize(
    "words",
    [
        ("attacks", "--part", "speed"),
        ("defences", "--part", "bundled"),
        ("scores", "--policies", "8", "--model", "lenet-relu"),
        ("verdict",),
        ("federated", "--part", "gap"),
        ("policies-hide", "--data", "fashion-mnist-sample"),
        ("single-transforms", "--images", "2"),
    ],
    ids=lambda words: words[0],
)
def test_a_second_study_in_the_folder_is_refused(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gradveil", "reproduce", *words, "--quiet", "--out", str(tmp_path)])
    with only_command(tmp_path, "reproduce"), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert f"another command is at work in {tmp_path}: wait for it" in shown
    assert shown.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] in ([], [LOCK])


def test_a_line_that_stands_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy has a seal that holds, and a table would count it twice."""
    lines = (MEASURED / "told-defences" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join([*lines, lines[1]]))
    words = ["gradveil", "reproduce", "told-defences", "--table", "--quiet", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == (
        f"gradveil: {tmp_path / 'journal.jsonl'}, line {len(lines) + 1}, is a copy of line 2: remove one of them\n"
    )
    assert not (tmp_path / "told-defences.md").exists()
