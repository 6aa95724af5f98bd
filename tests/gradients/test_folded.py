"""A folded model computes what the original computes, in every parameter."""

import pytest
import torch
from torch import Tensor, nn

from gradveil.gradients import fold_batch_norm, gradient
from gradveil.gradients.folded import FoldedSequential
from gradveil.losses import CrossEntropy
from gradveil.models import build
from gradveil.rng import generator


def trained(name: str) -> nn.Module:
    """Build a model whose batch normalisations have seen images and are no identities."""
    model = build(name, (1, 12, 12), 4, (0.5,), (0.5,), generator(0))
    model.train()(torch.rand(8, 1, 12, 12, generator=generator(1)))
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.weight.uniform_(0.5, 1.5, generator=generator(2))
                layer.bias.uniform_(-0.5, 0.5, generator=generator(3))
    return model.eval()


def tensors(model: nn.Module) -> dict[str, Tensor]:
    images = torch.rand(2, 1, 12, 12, generator=generator(4))
    return gradient(model, CrossEntropy(), images, torch.tensor([0, 3]))


@pytest.mark.parametrize("name", ["convnet-2", "resnet20-1", "lenet-relu"])
def test_outputs_and_gradients_stay(name: str) -> None:
    model = trained(name)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    folded = fold_batch_norm(model)
    images = torch.rand(3, 1, 12, 12, generator=generator(5))
    torch.testing.assert_close(folded(images), model(images), rtol=1e-4, atol=1e-5)
    expected, computed = tensors(model), tensors(folded)
    assert list(expected) == list(computed)
    for key, tensor in expected.items():
        torch.testing.assert_close(computed[key], tensor, rtol=1e-3, atol=1e-5)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())


@pytest.mark.parametrize(("name", "count"), [("convnet-2", 8), ("resnet20-1", 21), ("lenet-relu", 0)])
def test_every_convolution_with_a_normalisation_is_folded(name: str, count: int) -> None:
    folded = [layer for layer in fold_batch_norm(trained(name)).modules() if isinstance(layer, FoldedSequential)]
    assert sum(len(layer.folded) for layer in folded) == count


def test_batch_statistics_are_left_alone() -> None:
    model = trained("convnet-2").train()
    assert not any(layer.folded for layer in fold_batch_norm(model).modules() if isinstance(layer, FoldedSequential))
