"""Sealing files that a version without seals wrote."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from gradveil.errors import DataError
from gradveil.journal import Journal
from gradveil.models import ModelSpec
from gradveil.results import SEAL
from gradveil.rng import generator
from gradveil.tensor_files import read_sealed_tensors
from gradveil.training import load_checkpoint, save_checkpoint
from scripts.seal_files import list_files, seal_file

SPEC = ModelSpec("lenet", (1, 28, 28), 10, (0.3,), (0.35,))


def unseal(path: Path) -> None:
    record = json.loads(path.read_text())
    del record[SEAL]
    path.write_text(json.dumps(record))


def test_a_journal_is_sealed_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.path.write_text('{"a": 1, "b": [0.1, null]}\n{"a": 2}\n')
    journal.path.chmod(0o600)
    assert seal_file(journal.path)
    assert journal.read() == [{"a": 1, "b": [0.1, None]}, {"a": 2}]
    assert journal.path.stat().st_mode & 0o777 == 0o600
    assert not seal_file(journal.path)
    journal.append({"a": 3})
    with journal.path.open("a") as stream:
        stream.write('{"a": 4}\n')
    assert seal_file(journal.path)
    assert [line["a"] for line in journal.read()] == [1, 2, 3, 4]


def test_a_changed_line_is_not_sealed_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"a": 1})
    journal.path.write_text(journal.path.read_text().replace("1", "2", 1))
    with pytest.raises(DataError, match="line 1, was changed"):
        seal_file(journal.path)


def test_checkpoints_and_states_are_sealed(tmp_path: Path) -> None:
    place = tmp_path / "final.safetensors"
    save_checkpoint(place, dict(SPEC.build(generator(0, "model")).state_dict()), SPEC, {"seed": 1})
    unseal(tmp_path / "final.json")
    old = save({"model/a": torch.ones(2)}, {"made": '{"seed": 1}', "state": '{"step": 2}'})
    (tmp_path / "resume.safetensors").write_bytes(old)
    (tmp_path / "audit.json").write_text("{}")
    files = list(list_files(tmp_path))
    assert [one.name for one in files] == ["final.json", "resume.safetensors"]
    assert [seal_file(one) for one in files] == [True, True]
    assert [seal_file(one) for one in files] == [False, False]
    assert load_checkpoint(place).made == {"seed": 1}
    assert json.loads(read_sealed_tensors(files[1], "run")[1]) == {"made": {"seed": 1}, "state": {"step": 2}}


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "final.safetensors"
    save_checkpoint(place, dict(SPEC.build(generator(0, "model")).state_dict()), SPEC, {})
    unseal(tmp_path / "final.json")
    place.write_bytes(place.read_bytes()[:-1] + b"\x01")
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.seal_files", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert ended.returncode == 1
    assert "does not describe the weights" in ended.stderr
    assert ended.stderr.count("\n") == 1
