"""The results convention."""

import json
from pathlib import Path

import pytest

from gradveil import __version__
from gradveil.errors import OutputError, SettingsError
from gradveil.results import claim_folder, claimed_folder, find_device, record, to_json, write_file


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    write_file(tmp_path / "a.txt", "first")
    write_file(tmp_path / "a.txt", b"second")
    assert (tmp_path / "a.txt").read_text() == "second"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--out"):
        write_file(tmp_path / "missing" / "a.txt", "text")
    with pytest.raises(OutputError, match="--out"):
        claim_folder(tmp_path / "file" / "below", "audit")


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    claim_folder(tmp_path, "audit")
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(OutputError, match="--overwrite"):
        claim_folder(tmp_path, "audit")
    assert claim_folder(tmp_path, "audit", overwrite=True) == tmp_path
    with pytest.raises(OutputError, match="no earlier result of 'gradveil train'"):
        claim_folder(tmp_path, "train", overwrite=True)


def test_a_failed_run_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), claimed_folder(tmp_path / "new", "audit"):
        raise ValueError("stop")
    assert not (tmp_path / "new").exists()


def test_a_record_says_where_it_comes_from() -> None:
    found = json.loads(to_json(record("audit", {"seed": 1}, {"rows": []})))
    assert (found["schema"], found["command"], found["settings"], found["rows"]) == (1, "audit", {"seed": 1}, [])
    assert found["environment"]["gradveil"] == __version__
    assert found["environment"]["cores"] >= 1


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_json({"value": float("nan")})


def test_devices() -> None:
    assert find_device("cpu").type == "cpu"
    assert find_device("auto").type in ("cpu", "cuda")
    with pytest.raises(SettingsError, match="choose auto"):
        find_device("abacus")
