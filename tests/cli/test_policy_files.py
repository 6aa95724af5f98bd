"""Policies that a search wrote, wherever a policy can be named."""

import json
import sys
from pathlib import Path

import pytest

from gradveil.cli import main
from gradveil.cli.arms import write_arm
from gradveil.cli.policy_files import read_arm, read_policy
from gradveil.errors import PolicyError
from gradveil.results import seal

RECORD = {
    "schema": 1,
    "hybrid": {"catalogue": "v1", "policy": "3-1-7+43-18-18"},
    "policies": [{"catalogue": "v1", "policy": "3-1-7"}, {"catalogue": "v1", "policy": "43-18-18"}],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.json"
    path.write_text(json.dumps(seal(RECORD)))
    return path


def test_a_file_stands_for_its_hybrid_and_a_rank_for_one_policy(file: Path) -> None:
    assert read_policy("3-1-7") == "3-1-7"
    assert read_policy(str(file)) == "3-1-7+43-18-18"
    assert read_policy(f"{file}#2") == "43-18-18"
    assert read_arm(f"policy:{file},gaussian:1e-3,no-base") == "policy:3-1-7+43-18-18,gaussian:1e-3,no-base"
    assert read_arm("crop-flip") == "crop-flip"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"hybrid": "3-1-7"}', '{"hybrid": {"policy": "3"}}', "[" * 100_000]
)
def test_other_files_are_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(PolicyError):
        read_policy(str(file))
    if content.startswith("{"):
        file.write_text(json.dumps(seal(json.loads(content))))
        with pytest.raises(PolicyError):
            read_policy(str(file))


def test_a_changed_file_is_refused(file: Path) -> None:
    file.write_text(file.read_text().replace("43-18-18", "43-18-19", 1))
    with pytest.raises(PolicyError, match=r"policies\.json was changed or damaged"):
        read_policy(str(file))


@pytest.mark.parametrize("rank", ["0", "3", "x", ""])
def test_ranks_that_are_not_there_are_refused(file: Path, rank: str) -> None:
    with pytest.raises(PolicyError, match="#1 to"):
        read_policy(f"{file}#{rank}")


def test_training_takes_them(file: Path) -> None:
    assert write_arm(True, str(file), []) == "policy:3-1-7+43-18-18"
    assert write_arm(False, "none", [f"policy:{file}#1,clip:1"]) == "policy:3-1-7,clip:1,no-base"


def test_the_audit_takes_them(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["--images", "1", "--steps", "1", "--phase", "init", "--workers", "1", "--quiet"]
    arms = ["--policy", str(file), "--defence", f"policy:{file}#1,no-base"]
    monkeypatch.setattr(sys, "argv", ["gradveil", "audit", *options, *arms, "--out", str(tmp_path / "audit")])
    with pytest.raises(SystemExit):
        main()
    record = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert record["settings"]["arms"] == ["none", "policy:3-1-7,no-base", "policy:3-1-7+43-18-18"]
