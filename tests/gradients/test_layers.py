"""Which layers are known, and where batch normalisation is folded."""

import pytest
from torch import nn

from gradveil.gradients.layers import find_layers, make_layer
from tests.gradients.models import build, make_images


def test_normalisation_is_folded_where_that_pays() -> None:
    model = build("batch normalisation").requires_grad_(False).eval()
    layers = find_layers(model, make_images()[0][:1])
    assert [type(layer).__name__ for layer in layers] == [
        "FoldedLayer",
        "FoldedLayer",
        "ConvolutionLayer",
        "BatchNormLayer",
        "LinearLayer",
    ]


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, padding="same"), nn.BatchNorm2d(4, affine=False), nn.PReLU()],
    ids=lambda layer: type(layer).__name__,
)
def test_an_unknown_layer_is_refused_by_name(layer: nn.Module) -> None:
    with pytest.raises(NotImplementedError, match=type(layer).__name__):
        make_layer(layer)
