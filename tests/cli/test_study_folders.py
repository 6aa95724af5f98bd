"""The folders of studies: one command at a time works there."""

import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.folders import LOCK, only_command


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
