"""The harness that damages files: it sees a silent difference, a traceback, and a line that names nothing."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.faults.corrupt import KINDS, Damage, Use, damage, judge
from tests.faults.processes import Ended, FaultError, Place


def make_use(folder: Path, found: Any) -> Use:
    for name in ("one.json", "two.json"):
        (folder / name).write_text(f"what {name} holds\n")
    return Use("records", folder, ("*.json",), lambda out: (str(out),), lambda *_: found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_damaged(kind: str, tmp_path: Path) -> None:
    use = make_use(tmp_path, None)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = damage(use, tmp_path, kind, random.Random(3))
    changed = {name for name, content in before.items() if (tmp_path / name).read_bytes() != content}
    assert changed == {str(one) for one in (done.file, done.also) if one is not None}


@pytest.mark.parametrize(
    ("code", "said", "found", "outcome"),
    [
        (0, "", {"score": 1}, "same"),
        (2, "gradveil: one.json was changed\n", {}, "refused"),
        (0, "", {"score": 1, "one.json": "torn"}, "not read"),
        (0, "", {"score": 2}, None),
        (2, "gradveil: something was changed\n", {}, None),
        (2, "gradveil: one.json was changed\nand more\n", {}, None),
        (1, "Traceback (most recent call last): one.json\n", {}, None),
    ],
)
def test_only_the_same_result_or_one_line_that_names_the_file_survives(
    code: int, said: str, found: dict[str, Any], outcome: str | None, tmp_path: Path
) -> None:
    folder, place = tmp_path / "whole", Place(tmp_path / "place").make()
    for one in (folder, place.out):
        one.mkdir()
    use = make_use(folder, found)
    (place.out / "one.json").write_text("torn")
    arguments = use, {"score": 1}, place, Ended(code, said, "", 0.1), Damage("cut off", Path("one.json"))
    if outcome is None:
        with pytest.raises(FaultError):
            judge(*arguments)
    else:
        assert judge(*arguments) == outcome
