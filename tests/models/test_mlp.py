"""The network of linear layers."""

import torch
from torch.nn import functional as F

from gradveil.models.mlp import MultilayerPerceptron
from gradveil.rng import generator


def test_the_first_layers_gradient_gives_the_input_away() -> None:
    """The gradient of a weight row is the bias gradient times the input, so their quotient is the input."""
    model = MultilayerPerceptron((1, 9, 9), 10, (0.5,), (0.2,), width=16)
    image = torch.rand(1, 1, 9, 9, generator=generator(0, "image"))
    parameters = list(model.body[1].parameters())
    weight, bias = torch.autograd.grad(F.cross_entropy(model(image), torch.tensor([3])), parameters)
    row = bias.abs().argmax()
    torch.testing.assert_close(weight[row] / bias[row], model.normalise(image).flatten(), rtol=1e-4, atol=1e-5)
