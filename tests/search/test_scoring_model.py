"""The model that is scored: from a checkpoint or trained, with its loss."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil.data import DataSet
from gradveil.errors import SettingsError
from gradveil.losses import CrossEntropy
from gradveil.rng import generator
from gradveil.search.scoring_model import prepare_model, read_checkpoint, train_model
from gradveil.study import silent
from gradveil.training import BRIEF, Checkpoint, save_checkpoint
from tests.search.runs import SMALL, drawn_checkpoint


def test_a_checkpoint_brings_weights_loss_and_a_fresh_model(sample: DataSet) -> None:
    prepared = prepare_model(drawn_checkpoint(sample, {"settings": BRIEF.to_record()}), 0)
    assert prepared.loss == CrossEntropy(0.1)
    fresh = prepared.spec.build(generator(0, "model")).state_dict()
    assert all(tensor.equal(fresh[name]) for name, tensor in prepared.fresh.state_dict().items())
    other = drawn_checkpoint(sample)
    first = next(iter(other.weights))
    changed = replace(other, weights={**other.weights, first: other.weights[first] + 1})
    assert prepare_model(other, 0).digest == prepared.digest != prepare_model(changed, 0).digest


def test_a_checkpoint_of_other_images_is_refused(sample: DataSet, checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_checkpoint(path, dict(checkpoint.weights), checkpoint.spec, {})
    assert read_checkpoint(path, "lenet-relu", sample).spec == checkpoint.spec
    other = replace(sample, class_names=(*sample.class_names, "hat"))
    for source in (path, checkpoint):
        with pytest.raises(SettingsError, match=r"in 10 classes, the data has .* in 11: choose the data"):
            read_checkpoint(source, "lenet", other)


def test_a_model_is_trained_once(sample: DataSet, tmp_path: Path) -> None:
    settings = replace(SMALL, training=replace(BRIEF, epochs=1, fraction=0.02))
    trained = train_model(settings, sample, tmp_path / "model", silent)
    assert trained.loss == CrossEntropy(0.1)
    reports: list[str] = []
    again = train_model(settings, sample, tmp_path / "model", lambda what, _, __: reports.append(what))
    assert reports == []
    assert all(torch.equal(tensor, trained.weights[name]) for name, tensor in again.weights.items())
