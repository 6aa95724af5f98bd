"""Residual networks."""

import torch
from torch import nn

from gradveil.models.resnet import BottleneckBlock, resnet18, resnet20, shortcut

COLOUR = (0.5, 0.4, 0.3), (0.2, 0.2, 0.3)


def test_stages_halve_the_image() -> None:
    shapes: list[tuple[int, ...]] = []
    model = resnet20((3, 32, 32), 7, *COLOUR, width=1)
    for block in model.body:
        block.register_forward_hook(lambda _m, _i, output: shapes.append(tuple(output.shape[1:])))
    model(torch.rand(2, 3, 32, 32))
    assert shapes == [(16, 32, 32)] * 3 + [(32, 16, 16)] * 3 + [(64, 8, 8)] * 3


def test_a_shortcut_has_weights_only_where_the_shape_changes() -> None:
    assert isinstance(shortcut(4, 4, 1), nn.Identity)
    changed = shortcut(4, 8, 2)
    assert changed(torch.rand(2, 4, 10, 10)).shape == (2, 8, 5, 5)


def test_a_bottleneck_widens_by_four() -> None:
    assert BottleneckBlock(8, 4, 2)(torch.rand(2, 8, 10, 10)).shape == (2, 16, 5, 5)


def test_the_width_is_that_of_the_first_stage() -> None:
    model = resnet18((1, 28, 28), 10, (0.5,), (0.2,), width=4)
    assert model.stem[0].weight.shape == (4, 1, 3, 3)
    assert model.head.weight.shape == (10, 32)
