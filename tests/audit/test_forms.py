"""What is written down of a job comes back to the bit."""

import json
from dataclasses import asdict, fields
from typing import Any

import pytest
import torch
from torch import Tensor

from gradveil.audit.forms import ATTACKED, TRAINED
from gradveil.audit.jobs import Attacked
from gradveil.defences import Guarantee
from gradveil.rounds import Truth
from gradveil.training import Epoch, TrainingResult
from gradveil.types import Reconstruction

RESULT = Reconstruction(
    torch.rand(1, 1, 4, 4),
    torch.tensor([3]),
    0.25,
    "ok",
    ((0, 1.0), (5, 0.25)),
    ((0, {"weight": 0.5}),),
    ((0, torch.rand(1, 1, 4, 4)), (5, torch.rand(1, 1, 4, 4))),
    torch.rand(1, 1, 4, 4),
    "",
    ("left out",),
)
FAILED = Reconstruction(torch.zeros(1, 1, 4, 4), torch.tensor([0]), float("inf"), "refused", reason="cannot")


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Tensor):
        return torch.equal(ours, theirs)
    if isinstance(ours, tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("result", [RESULT, FAILED], ids=["ok", "refused"])
def test_attacks_come_back(result: Reconstruction) -> None:
    truth = Truth(7, 3, torch.rand(1, 1, 4, 4), torch.rand(1, 1, 4, 4), 2)
    before = [Attacked(truth, result, 1.5, 1.25, ("noticed",), 0.125, None), Attacked(truth, result, 0.0, 0.0)]
    tensors, content = ATTACKED.pack(before)
    after = ATTACKED.unpack(tensors, json.loads(json.dumps(content)))
    for ours, theirs in zip(before, after, strict=True):
        for part in ("truth", "reconstruction"):
            for field in fields(getattr(ours, part)):
                values = (getattr(getattr(one, part), field.name) for one in (ours, theirs))
                assert same(*values), field.name
        assert [getattr(ours, name) for name in ("seconds", "notices", "match_rebuilt", "match_truth")] == [
            getattr(theirs, name) for name in ("seconds", "notices", "match_rebuilt", "match_truth")
        ]


def test_trainings_come_back() -> None:
    weights = {"init": {"a.weight": torch.rand(2, 3)}, "final": {"a.weight": torch.rand(2, 3), "n": torch.tensor(4)}}
    guarantee = Guarantee(1.5, 1e-5, 1.1, 1.0, 0.1, 30)
    before = TrainingResult(weights, (Epoch(1, 0.5, 0.6, None, 0.1, 2.0),), 0.75, 3.5, guarantee)
    tensors, content = TRAINED.pack(before)
    after = TRAINED.unpack(tensors, json.loads(json.dumps(content)))
    assert (after.curves, after.test_accuracy, after.seconds) == (before.curves, 0.75, 3.5)
    assert after.guarantee is not None
    assert asdict(after.guarantee) == asdict(guarantee)
    assert list(after.snapshots) == ["init", "final"]
    for phase, tensors in weights.items():
        assert set(after.snapshots[phase]) == set(tensors)
        assert all(torch.equal(after.snapshots[phase][name], tensor) for name, tensor in tensors.items())
