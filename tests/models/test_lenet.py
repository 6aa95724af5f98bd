"""The small convolutional networks."""

import pytest
import torch
from torch import nn

from gradveil.models import LeNet
from gradveil.rng import generator, global_state_from


def test_the_published_network_has_sigmoids_and_uniform_weights() -> None:
    with global_state_from(generator(0, "weights")):
        model = LeNet((3, 32, 32), 100, (0.5,) * 3, (0.2,) * 3)
    assert sum(isinstance(module, nn.Sigmoid) for module in model.modules()) == 4
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert weights.abs().max() <= 0.5
    assert weights.std() == pytest.approx(1 / 12**0.5, rel=0.02)


def test_the_relu_variant_keeps_torchs_initialisation() -> None:
    model = LeNet((1, 28, 28), 10, (0.5,), (0.2,), activation=nn.ReLU, uniform=None, kernels=24)
    assert sum(isinstance(module, nn.ReLU) for module in model.modules()) == 4
    assert model.head.in_features == 24 * 7 * 7
    assert model.head.weight.abs().max() <= (24 * 7 * 7) ** -0.5
