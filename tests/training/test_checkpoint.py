"""Checkpoints: what goes in comes out, and what does not fit is refused before it is used."""

import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from gradveil.defences import defend_model, parse_defences
from gradveil.errors import CheckpointError
from gradveil.models import ModelSpec
from gradveil.results import SEAL, seal
from gradveil.rng import generator
from gradveil.training import load_checkpoint, save_checkpoint

SPEC = ModelSpec("convnet-2", (1, 28, 28), 10, (0.3,), (0.35,))
MADE = {"seed": 3, "phase": "final"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good checkpoint."""
    model = SPEC.build(generator(0, "model"))
    model(torch.rand(8, 1, 28, 28))
    place = tmp_path / "final.safetensors"
    save_checkpoint(place, dict(model.state_dict()), SPEC, MADE)
    return place


def describe(path: Path, **changes: Any) -> None:
    """Change the JSON beside the weights and seal it again."""
    place = path.with_suffix(".json")
    place.write_text(json.dumps(seal({**json.loads(place.read_text()), **changes})))


def put_weights(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    describe(path, sha256=hashlib.sha256(content).hexdigest())


def test_weights_lie_where_torch_puts_its_own(path: Path) -> None:
    """The last bits of a sum depend on where its numbers lie."""
    assert all(tensor.data_ptr() % 64 == 0 for tensor in load_checkpoint(path).weights.values())


def test_what_goes_in_comes_out(path: Path) -> None:
    model = SPEC.build(generator(0, "model"))
    images = torch.rand(8, 1, 28, 28)
    model(images)
    model.eval()
    checkpoint = load_checkpoint(path)
    save_checkpoint(path, dict(model.state_dict()), SPEC, MADE)
    assert torch.equal(load_checkpoint(path, "convnet-2").build()(images), model(images))
    assert checkpoint.spec == SPEC
    assert checkpoint.made == MADE
    assert not checkpoint.build().training


def test_no_temporary_file_stays_behind(path: Path) -> None:
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["final.json", "final.safetensors"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "resnet20-1"}, r"does not fit the model: .* missing .* and \d+ more"),
        ({"name": "convnet-3"}, r"body\.0\.weight is F32\[2, 1, 3, 3\] instead of F32\[3, 1, 3, 3\]"),
        ({"classes": 11}, r"head\.weight is F32\[10, 72\] instead of F32\[11, 72\]"),
        ({"shape": [3, 28, 28], "mean": [0.5] * 3, "std": [0.5] * 3}, r"instead of F32\[2, 3, 3, 3\]"),
        ({"name": "alexnet"}, "unknown model 'alexnet'"),
        ({"classes": 10**18}, "cannot be built|does not fit"),
        ({"shape": [1, 28]}, "cannot be read"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_another_architecture_is_refused(path: Path, model: dict[str, Any], message: str) -> None:
    describe(path, model={**SPEC.to_record(), **model})
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_shapes_are_checked_before_anything_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With wrong shapes and a wrong hash, the shapes are what is reported and the weights are never read."""
    describe(path, model={**SPEC.to_record(), "classes": 11}, sha256="0")
    monkeypatch.setattr("gradveil.training.checkpoint.load", lambda _: pytest.fail("the weights were read"))
    with pytest.raises(CheckpointError, match="does not fit the model"):
        load_checkpoint(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(path: Path, value: float) -> None:
    weights = load_checkpoint(path).weights
    weights["head.bias"][3] = value
    put_weights(path, save(weights))
    with pytest.raises(CheckpointError, match=r"NaN or infinity in 'head\.bias'"):
        load_checkpoint(path)


def test_a_changed_file_is_refused(path: Path) -> None:
    weights = load_checkpoint(path).weights
    weights["head.bias"][3] += 1
    path.write_bytes(save(weights))
    with pytest.raises(CheckpointError, match="SHA-256 differs"):
        load_checkpoint(path)


def test_a_changed_description_is_refused(path: Path) -> None:
    described = path.with_suffix(".json")
    whole = described.read_text()
    assert whole.count("0.3\n") == 1
    described.write_text(whole.replace("0.3\n", "0.4\n"))
    with pytest.raises(CheckpointError, match=r"final\.json was changed or damaged"):
        load_checkpoint(path)
    record = json.loads(whole)
    del record[SEAL]
    described.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=r"has no seal: .*scripts/seal_files\.py"):
        load_checkpoint(path)


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file_is_refused(path: Path, kept: int) -> None:
    put_weights(path, path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        load_checkpoint(path)


class Bomb:
    """Runs something when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import sys; sys.modules['gradveil_exploded'] = sys",)


def test_a_pickle_is_never_run(path: Path) -> None:
    put_weights(path, pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        load_checkpoint(path)
    assert "gradveil_exploded" not in sys.modules


def test_a_checkpoint_alone_imports_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "someone_elses.py").write_text(
        "from gradveil.models import factory\nmake = factory('convnet-2')\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    describe(path, model={**SPEC.to_record(), "name": "someone_elses:make"})
    with pytest.raises(CheckpointError, match="name it yourself"):
        load_checkpoint(path)
    assert "someone_elses" not in sys.modules
    assert load_checkpoint(path, "someone_elses:make").build().eval()(torch.rand(1, 1, 28, 28)).shape == (1, 10)
    monkeypatch.delitem(sys.modules, "someone_elses")


def test_another_name_than_expected_is_refused(path: Path) -> None:
    with pytest.raises(CheckpointError, match="of 'convnet-2', not of 'convnet-16'"):
        load_checkpoint(path, "convnet-16")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"schema": 2, "made": {}}', b"\xff\xfe", b"[" * 100_000])
def test_a_description_that_is_none(path: Path, content: bytes) -> None:
    path.with_suffix(".json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"final\.json"):
        load_checkpoint(path)


def test_missing_files(path: Path) -> None:
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        load_checkpoint(path)
    path.with_suffix(".json").unlink()
    with pytest.raises(CheckpointError, match=r"final\.json"):
        load_checkpoint(path)


def test_weights_without_a_model_say_so(path: Path) -> None:
    describe(path, model=None)
    with pytest.raises(CheckpointError, match="does not say what model it fits"):
        load_checkpoint(path)


def test_a_model_that_a_defence_changed_is_built_as_it_was_trained(path: Path) -> None:
    defences = parse_defences(["precode:width=5"])
    model = defend_model(defences, SPEC.build(generator(0, "model")), generator(0, "defence")).eval()
    save_checkpoint(path, dict(model.state_dict()), SPEC, {**MADE, "model_defences": ["precode:width=5"]})
    images = torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        assert torch.equal(load_checkpoint(path).build()(images), model(images))
    describe(path, made=MADE)
    with pytest.raises(CheckpointError, match="does not fit the model"):
        load_checkpoint(path)


@pytest.mark.parametrize("defences", [["magic"], "precode", [3]])
def test_defences_that_are_none_are_refused(path: Path, defences: Any) -> None:
    describe(path, made={**MADE, "model_defences": defences})
    with pytest.raises(CheckpointError, match=r"final\.json"):
        load_checkpoint(path)
