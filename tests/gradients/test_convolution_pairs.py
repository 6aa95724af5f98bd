"""A convolution and the batch normalisation after it are found by what passes between them, and folded into one."""

import copy

import torch
from torch import Tensor, nn

from gradveil.gradients.convolution_pairs import find_pairs, fold
from tests.gradients.models import build, make_images


class Detour(nn.Module):
    """Change what a convolution computes before it is normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, images: Tensor) -> Tensor:
        normal: Tensor = self.norm(self.layer(images).relu())
        return normal


def test_pairs_are_found_with_their_sizes() -> None:
    pairs = find_pairs(build("batch normalisation").eval(), make_images()[0][:1])
    assert [(pair.name, pair.positions, pair.window) for pair in pairs] == [("1", 100, 27), ("4", 64, 36), ("7", 4, 72)]
    assert find_pairs(Detour().double().eval(), make_images()[0][:1]) == []


def test_a_folded_model_computes_the_same() -> None:
    model = build("batch normalisation").eval()
    images, _ = make_images()
    folded = copy.deepcopy(model)
    for pair in find_pairs(folded, images[:1]):
        fold(folded, pair)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    torch.testing.assert_close(folded(images), model(images))
