"""The worked examples of the architecture page, run as they are printed."""

import re
from pathlib import Path
from typing import Any

import pytest

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


def test_the_drawing_names_every_room() -> None:
    source = Path(__file__).parents[1] / "src" / "gradveil"
    rooms = {path.stem for path in source.iterdir() if path.stem[0] not in "_." and path.name != "py.typed"}
    drawing = PAGE.read_text().split("## The rooms")[1].split("## What to touch")[0]
    missing = sorted(room for room in rooms if not re.search(rf"\b{room}\b", drawing))
    assert missing == []
