import json
from pathlib import Path

import pytest

from gradveil.cli.options import make_console
from gradveil.cli.records import keep_record
from gradveil.errors import OutputError
from gradveil.results import record


def test_a_record_is_kept_in_the_folder_that_is_named(tmp_path: Path) -> None:
    console, written = make_console(True, False), record("score", {"seed": 0}, {"value": 1})
    keep_record(None, False, written, console)
    assert list(tmp_path.iterdir()) == []
    keep_record(tmp_path / "out", False, written, console)
    assert json.loads((tmp_path / "out" / "score.json").read_text())["value"] == 1
    with pytest.raises(OutputError, match="pass --overwrite"):
        keep_record(tmp_path / "out", False, written, console)
    keep_record(tmp_path / "out", True, {**written, "value": 2}, console)
    assert json.loads((tmp_path / "out" / "score.json").read_text())["value"] == 2
