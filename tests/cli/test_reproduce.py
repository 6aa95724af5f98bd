"""What a study cannot do is refused before it trains anything or makes a folder."""

import sys
from pathlib import Path

import pytest

from gradveil.cli import main


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (["single-transforms", "--images", "99999"], "from 1 to 800"),
        (["scores", "--model", "nope"], "lenet-relu"),
        (["attacks", "--part", "nope"], "published"),
        (["attacks", "--part", "policy", "--model", "lenet"], "choose from lenet-relu"),
        (["defences", "--part", "nope"], "bundled"),
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
