import math

import pytest
import torch
from torch import nn

from gradveil.inspection.isolation import Isolation, measure_isolation, summarise, worst
from gradveil.losses import CrossEntropy


def test_the_ratio_is_the_largest_gradient_over_the_others() -> None:
    lengths = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 1.5]])
    seen = summarise(lengths)
    assert seen.d_snr == pytest.approx(5 / 2.5)
    assert seen.alone == 0
    assert summarise(torch.tensor([[1.0, 2.0], [0.0, 2.0]])).alone == 0.5


def test_one_image_with_a_gradient_is_infinitely_isolated_and_none_is_not() -> None:
    assert summarise(torch.tensor([[1.0], [0.0]])) == Isolation(math.inf, 1.0)
    assert summarise(torch.zeros(2, 3)) == Isolation(0.0, 0.0)


def test_the_largest_over_batches_counts() -> None:
    assert worst([{"a": Isolation(1, 0.5)}, {"a": Isolation(2, 0.25)}]) == {"a": Isolation(2, 0.5)}


def test_the_gradients_are_those_of_single_images() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    images, labels = torch.rand(3, 1, 2, 2), torch.tensor([0, 1, 2])
    lengths = []
    for place in range(3):
        loss = nn.functional.cross_entropy(model(images[place : place + 1]), labels[place : place + 1])
        assert isinstance(model[1], nn.Linear)
        lengths.append(float(torch.autograd.grad(loss, model[1].weight)[0].norm()))
    seen = measure_isolation(model, CrossEntropy(), images, labels)
    assert set(seen) == {"1.weight", "1.bias"}
    assert seen["1.weight"].d_snr == pytest.approx(max(lengths) / (sum(lengths) - max(lengths)), rel=1e-5)
