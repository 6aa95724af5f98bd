from pathlib import Path

import pytest
from torch import Tensor, nn

from gradveil import data
from gradveil.errors import SettingsError
from gradveil.search import choose_training, search_policies

SAMPLE = data.load("fashion-mnist-sample")


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 5, stride=3), nn.ReLU())
        self.head = nn.Linear(4 * 8 * 8, 10)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images).flatten(1))
        return logits


def test_a_module_is_scored_with_its_own_weights(tmp_path: Path) -> None:
    model = Tiny()
    found = search_policies(model, SAMPLE, candidates=6, keep=2, images=4, folder=tmp_path / "kept")
    assert len(found.policies) == 2
    assert found.record["settings"]["training"] is None
    assert found.record["none"]["images"] == 4
    assert (tmp_path / "kept" / "policies.json").exists()
    again = search_policies(model, SAMPLE, candidates=6, keep=2, images=4)
    assert (again.policies, again.hybrid) == (found.policies, found.hybrid)


def test_a_module_cannot_be_trained_anew() -> None:
    with pytest.raises(SettingsError, match="give the model by name"):
        search_policies(Tiny(), SAMPLE, validate=1)


def test_small_data_is_trained_on_in_full() -> None:
    training = choose_training("folder:photos", 48)
    assert training.fraction == 1.0
    assert training.epochs * training.steps_per_epoch(48) >= 100
    assert choose_training("fashion-mnist-sample", 5000).fraction < 1
