from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gradveil import data
from gradveil.errors import GradveilError
from gradveil.training import BRIEF, load_checkpoint, train_model

SAMPLE = data.load("fashion-mnist-sample")


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(49, 10)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(nn.functional.avg_pool2d(images - 0.5, 4).flatten(1))
        return logits


def test_a_copy_is_trained_under_an_arm() -> None:
    model = Tiny()
    before = model.head.weight.detach().clone()
    result = train_model(model, SAMPLE, arm="policy:3-1-7", settings=BRIEF, epochs=1)
    assert torch.equal(model.head.weight, before)
    assert torch.equal(result.snapshots["init"]["head.weight"], before)
    assert not torch.equal(result.snapshots["final"]["head.weight"], before)
    again = train_model(model, SAMPLE, arm="policy:3-1-7", settings=BRIEF, epochs=1)
    assert torch.equal(again.snapshots["final"]["head.weight"], result.snapshots["final"]["head.weight"])


def test_a_named_model_leaves_checkpoints(tmp_path: Path) -> None:
    result = train_model("mlp", SAMPLE, settings=BRIEF, epochs=1, folder=tmp_path)
    loaded = load_checkpoint(tmp_path / "final.safetensors")
    assert loaded.spec.name == "mlp"
    assert all(torch.equal(result.snapshots["final"][name], tensor) for name, tensor in loaded.weights.items())


def test_a_wrong_arm_is_refused_before_training() -> None:
    with pytest.raises(GradveilError, match="did you mean 'gaussian'"):
        train_model(Tiny(), SAMPLE, arm="gausian:1")
