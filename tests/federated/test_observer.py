"""The curious server: it finds its capsules and attacks them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.errors import DataError
from gradveil.federated import FederatedSettings, observe, run_federated
from gradveil.federated.observer import find_capsules


def small_data() -> DataSet:
    sample = data.load("fashion-mnist-sample")
    some = torch.arange(120)
    return replace(sample, train=sample.train.take(some), test=sample.test.take(some[:20]))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    settings = FederatedSettings(model="mlp", clients=3, rounds=2, batch_size=1, arm="none")
    run_federated(settings, small_data(), folder, capture=(1, 2), keep_truth=True)
    return folder


def test_every_captured_update_of_a_round_is_attacked(trained: Path) -> None:
    report = observe(trained, small_data(), [1, 2], ["analytic"])
    assert [row.phase for row in report.rows] == ["round-1"] * 3 + ["round-2"] * 3
    assert {row.status for row in report.rows} == {"ok"}
    assert all(row.psnr_transformed is not None and row.psnr_transformed > 40 for row in report.rows)
    assert report.notices == ()


def test_truths_are_not_taken_for_capsules(trained: Path) -> None:
    names = [path.name for path in find_capsules(trained, [2])]
    assert names == [f"round-0002-client-0{client}.safetensors" for client in range(3)]


def test_a_round_that_was_not_captured_is_named(trained: Path) -> None:
    with pytest.raises(DataError, match="no capsule of round 7"):
        observe(trained, small_data(), [7])


def test_rounds_of_the_same_images_are_attacked_together(tmp_path: Path) -> None:
    data = small_data()
    shares = replace(data, train=data.train.take(torch.arange(3)))
    settings = FederatedSettings(model="lenet-relu", clients=3, rounds=3, batch_size=1, arm="none")
    run_federated(settings, shares, tmp_path, capture=(1, 2, 3), keep_truth=True)
    report = observe(tmp_path, data, [1, 2, 3], ["fast"], steps=4, together=True)
    assert sorted(row.image for row in report.rows) == [0, 1, 2]
    assert {row.phase for row in report.rows} == {"round-1"}
    assert "9 rounds were attacked together: 3 sets of images" in report.notices
