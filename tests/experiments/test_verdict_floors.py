"""Floors against images that they were not made of."""

from dataclasses import replace

import pytest
import torch

from gradveil import data
from gradveil.data import choose_public
from gradveil.experiments import verdict_floors
from gradveil.experiments.verdict_floors import FloorTrial, measure_floors


@pytest.mark.slow
def test_floors_are_measured_on_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_floors, "HELD_OUT", 96)
    monkeypatch.setattr(verdict_floors, "ROUNDS", (8,))
    sample = data.load("fashion-mnist-sample")
    small = replace(sample, train=choose_public(sample, 1000, 0))
    found = measure_floors(FloorTrial("sample", 0), small)
    held_out = found["held_out"]
    assert held_out["now"]["kind"] == "class mean"
    assert 1 < held_out["now"]["mean"] < 4
    assert held_out["now"]["count"] == 96
    (line,) = found["pairing"]
    assert line["floor"] == "public pictures, paired"
    assert line["advantage"]["low"] < 0.2
    assert line["unpaired"]["mean"] > line["advantage"]["mean"]


def test_pieces_make_the_mean_of_all_training_images() -> None:
    sample = data.load("fashion-mnist-sample")
    total = sum((images.double().sum(0) for images, _ in verdict_floors.pieces(sample)), torch.zeros(sample.shape))
    assert torch.allclose(total / len(sample.train), (sample.train.images.double() / 255).mean(0), atol=1e-5)
