"""The worked examples of the architecture page, run as they are printed."""

import hashlib
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from gradveil.cli import main
from gradveil.scores import SCORES

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"


@pytest.mark.slow
def test_the_worked_examples_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "architecture"}
    try:
        for number, block in enumerate(blocks):
            exec(compile(block, f"{PAGE.name}, example {number + 1}", "exec"), names)
    finally:
        SCORES.pop("sharpness", None)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "(1, 28, 28) 10 160 40"
    assert len(printed[1].split(",")) == 2
    assert [line.split()[0] for line in printed[2:]] == ["none", "none", "keep-first:50", "keep-first:50"]
    assert {row.status for row in names["report"].rows} == {"ok"}


@pytest.mark.slow
def test_own_attacks_and_defences_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the lines of the page in a folder that holds its attacks and its defence as `mine.py`, as it says."""
    text = PAGE.read_text().split("### A model and data")[0]
    (tmp_path / "mine.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (lines,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for line in lines.splitlines():
        monkeypatch.setattr(sys, "argv", [*shlex.split(line), "--quiet"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0, line
    digest = hashlib.sha256((tmp_path / "mine.py").read_bytes()).hexdigest()
    settings = {
        name: json.loads((tmp_path / "runs" / name).read_text())["settings"]
        for name in ("own/audit.json", "one/attack.json", "trained/train.json", "together/federate.json")
    }
    assert all(one["code"]["mine:keep_fifty"] == digest for one in settings.values())
    assert settings["own/audit.json"]["attacks"] == ["mine:MeanColour", "mine:gentle"]
    observed = json.loads((tmp_path / "runs" / "together" / "observation" / "audit.json").read_text())["settings"]
    assert (observed["arms"], observed["attacks"]) == (["mine:keep_fifty"], ["mine:gentle"])
    sys.modules.pop("mine", None)


def test_the_drawing_names_every_room() -> None:
    source = Path(__file__).parents[1] / "src" / "gradveil"
    rooms = {path.stem for path in source.iterdir() if path.stem[0] not in "_." and path.name != "py.typed"}
    drawing = PAGE.read_text().split("## The rooms")[1].split("## What to touch")[0]
    missing = sorted(room for room in rooms if not re.search(rf"\b{room}\b", drawing))
    assert missing == []
