"""Batch normalisation without state computes what torch's own layer computes, under the same names."""

import pytest
import torch
from torch import nn

from gradveil.gradients import FrozenBatchNorm, batch_dependent, find_dropout, forget_statistics, freeze_batch_norm
from gradveil.gradients.batch_norm import BatchStatisticsNorm
from tests.gradients.models import build, make_images


@pytest.mark.parametrize("training", [False, True])
def test_the_copy_computes_the_same_and_the_model_is_left_as_it_was(training: bool) -> None:
    model = build("batch normalisation").train(training)
    changed = (forget_statistics if training else freeze_batch_norm)(model)
    kind = BatchStatisticsNorm if training else FrozenBatchNorm
    assert sum(isinstance(layer, kind) for layer in changed.modules()) == 3
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in model.modules()) == 3
    assert dict(changed.named_parameters()).keys() == dict(model.named_parameters()).keys()
    images, _ = make_images()
    torch.testing.assert_close(changed(images), model(images))


def test_each_function_leaves_the_other_mode_alone() -> None:
    model = build("batch normalisation")
    for changed in (freeze_batch_norm(model.train()), forget_statistics(model.eval())):
        assert sum(isinstance(layer, nn.BatchNorm2d) for layer in changed.modules()) == 3


def test_layers_that_depend_on_the_batch_are_named() -> None:
    model = build("batch normalisation")
    assert batch_dependent(model.train()) == ["1", "4", "7"]
    assert batch_dependent(model.eval()) == []
    assert batch_dependent(nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)).eval()) == ["0"]


def test_dropout_that_drops_is_listed() -> None:
    layers = nn.Dropout(0.5), nn.Dropout(0.0), nn.Dropout2d(0.1), nn.ReLU()
    assert find_dropout(nn.Sequential(*layers)) == [layers[0], layers[2]]
