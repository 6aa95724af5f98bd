"""Capsules: a round on disk, whole or refused."""

import json
import stat
from pathlib import Path

import pytest
import torch

from gradveil.capsule import (
    CapsulePaths,
    name_capsule,
    read_capsule,
    read_round_number,
    read_truth,
    write_capsule,
    write_truth,
)
from gradveil.client import Client
from gradveil.defences import build_defended, parse_arm
from gradveil.errors import DataError
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.results import seal
from gradveil.rng import generator
from gradveil.rounds import Round, Truth
from gradveil.types import Batch, LocalTraining

SPEC = ModelSpec("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,))
LOCAL = LocalTraining(epochs=2, batch_size=2, momentum=0.9, loss=CrossEntropy(0.1), mode="train")


def make_round(spec: ModelSpec = SPEC) -> Round:
    defences = parse_arm("precode:width=4,gaussian:0.01").defences
    model = build_defended(spec, defences, 0)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    batch = Batch(torch.randint(0, 256, (4, 1, 12, 12), dtype=torch.uint8, generator=generator(1)), torch.arange(4))
    update = Client(model, LOCAL).update(weights, batch, defences, generator(0))
    changing = tuple(one for one in defences if "model" in one.hooks)
    return Round(spec, changing, weights, update, defences, 1, "round-3", 7)


def make_truths() -> list[Truth]:
    images = torch.rand(2, 1, 12, 12, generator=generator(2))
    return [Truth(5 + row, row, images[row : row + 1], images[row : row + 1].flip(3), 3 - row) for row in range(2)]


def written(folder: Path) -> CapsulePaths:
    path = folder / name_capsule(3, 7)
    write_capsule(path, make_round(), 3)
    write_truth(path, make_truths(), {"data": "made up", "arm": "gaussian:0.01"})
    return CapsulePaths.of(path)


@pytest.mark.parametrize(("key", "value"), [("classes", 2**62), ("shape", [1, 40, 40]), ("name", "resnet152")])
def test_a_description_of_another_model_is_refused_before_it_is_built(key: str, value: object, tmp_path: Path) -> None:
    paths = written(tmp_path)
    record = json.loads(paths.description.read_bytes())
    record["model"][key] = value
    paths.description.write_text(json.dumps(seal(record)))
    with pytest.raises(DataError, match="describes no round that can be attacked"):
        read_capsule(paths.tensors)


def test_a_round_comes_back_as_it_was(tmp_path: Path) -> None:
    before, paths = make_round(), written(tmp_path)
    after = read_capsule(paths.description)
    assert after.spec == before.spec
    assert after.update.local == LOCAL
    assert after.known_defences == before.known_defences
    assert after.model_defences == before.model_defences
    assert (after.participants, after.phase, after.client, read_round_number(paths.tensors)) == (1, "round-3", 7, 3)
    assert after.update.buffers is not None
    assert before.update.buffers is not None
    assert before.update.labels is not None
    assert torch.equal(after.update.labels, before.update.labels)  # type: ignore[arg-type]
    for ours, theirs in (
        (after.weights, before.weights),
        (after.update.tensors, before.update.tensors),
        (after.update.buffers, before.update.buffers),
    ):
        assert ours.keys() == theirs.keys()
        assert all(
            torch.equal(ours[name], tensor) and ours[name].dtype == tensor.dtype for name, tensor in theirs.items()
        )


def test_what_is_read_lies_where_torch_puts_its_own(tmp_path: Path) -> None:
    """The last bits of a sum depend on where its numbers lie."""
    captured = read_capsule(written(tmp_path).tensors)
    tensors = [*captured.weights.values(), *captured.update.tensors.values()]
    assert len(tensors) > 8
    assert all(tensor.data_ptr() % 64 == 0 for tensor in tensors)


def test_the_truth_comes_back_and_only_its_owner_can_read_the_files(tmp_path: Path) -> None:
    paths = written(tmp_path)
    for before, after in zip(make_truths(), read_truth(paths.tensors), strict=True):
        assert (after.image, after.label, after.fed_label) == (before.image, before.label, before.fed_label)
        assert torch.equal(after.transformed, before.transformed)
        assert torch.equal(after.original, before.original)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_the_attackers_part_holds_nothing_of_the_truth(tmp_path: Path) -> None:
    paths = written(tmp_path)
    alone = {path.name for path in tmp_path.iterdir()} - {paths.truth.name}
    paths.truth.unlink()
    assert read_capsule(paths.tensors).update.images == 4
    pixels = make_truths()[0].original.numpy().tobytes()
    assert all(pixels not in (tmp_path / name).read_bytes() for name in alone)


@pytest.mark.parametrize("part", ["tensors", "description", "truth"])
def test_every_flipped_byte_is_seen(tmp_path: Path, part: str) -> None:
    paths = written(tmp_path)
    path: Path = getattr(paths, part)
    content = path.read_bytes()
    step = max(1, len(content) // 40)
    for place in range(0, len(content), step):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.raises(DataError):
            read_truth(paths.tensors) if part == "truth" else read_capsule(paths.tensors)


@pytest.mark.parametrize("part", ["tensors", "description"])
def test_a_truncated_or_missing_file_is_one_line(tmp_path: Path, part: str) -> None:
    paths = written(tmp_path)
    path: Path = getattr(paths, part)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError) as cut:
        read_capsule(paths.tensors)
    assert "\n" not in str(cut.value)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        read_capsule(paths.tensors)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"images": 0},
        {"images": "many"},
        {"local": {"steps": -1}},
        {"local": {"speed": 1}},
        {"model": {"name": "lenot"}},
        {"model": 5},
        {"known_defences": ["magic:1"]},
        {"extra": 1},
    ],
)
def test_a_record_that_is_sealed_but_nonsense_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    paths = written(tmp_path)
    record = json.loads(paths.description.read_text())
    paths.description.write_text(json.dumps(seal({**record, **change})))
    with pytest.raises(DataError) as refused:
        read_capsule(paths.tensors)
    assert "\n" not in str(refused.value)


def test_a_persons_own_factory_is_not_imported_because_a_file_says_so(tmp_path: Path) -> None:
    paths = written(tmp_path)
    record = json.loads(paths.description.read_text())
    record["model"]["name"] = "os:system"
    paths.description.write_text(json.dumps(seal(record)))
    with pytest.raises(DataError, match="name it yourself"):
        read_capsule(paths.tensors)


def test_a_module_may_be_given(tmp_path: Path) -> None:
    paths = written(tmp_path)
    model = SPEC.build(generator(0))
    assert read_capsule(paths.tensors, model).spec.name == "ConvNet"
