"""Muon: what its steps are, and to which parameters they belong."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gradveil import models
from gradveil.client.optimisers import Muon, make_optimiser, orthogonalise
from gradveil.rng import generator
from gradveil.training import FAST, PAPER


def build(name: str) -> nn.Module:
    return models.build(name, (1, 28, 28), 10, (0.5,), (0.25,), generator(0, "model"))


def random_matrix(height: int, width: int) -> Tensor:
    return torch.randn(height, width, generator=generator(0, "matrix"))


@pytest.mark.parametrize(("height", "width"), [(16, 9), (32, 288), (64, 64), (1, 5)])
def test_directions_stay_and_their_lengths_become_alike(height: int, width: int) -> None:
    matrix = random_matrix(height, width)
    left, before, right = torch.linalg.svd(matrix, full_matrices=False)
    found = left.T @ orthogonalise(matrix) @ right.T / max(1, height / width) ** 0.5
    assert found.diagonal()[before > 0.02 * before.max()].sub(1).abs().max() < 0.4
    assert (found - found.diagonal().diag()).abs().max() < 1e-4


def test_a_step_does_not_depend_on_the_gradients_length() -> None:
    matrix = random_matrix(8, 20)
    torch.testing.assert_close(orthogonalise(1e-3 * matrix), orthogonalise(matrix), rtol=1e-3, atol=1e-4)
    assert orthogonalise(torch.zeros(3, 4)).abs().max() == 0


@pytest.mark.parametrize("name", ["convnet-4", "mlp", "vit-tiny", "resnet20-1"])
def test_the_classifier_and_all_vectors_are_left_to_sgd(name: str) -> None:
    models_apart = build(name), build(name)
    local = replace(FAST, muon=0.2, learning_rate=0.1).local()
    optimisers = (
        make_optimiser(models_apart[0], local),
        make_optimiser(models_apart[1], replace(local, optimiser="sgd")),
    )
    assert isinstance(optimisers[0], Muon)
    assert not isinstance(optimisers[1], Muon)
    images, labels = torch.rand(4, 1, 28, 28, generator=generator(0)), torch.arange(4)
    before = {key: parameter.detach().clone() for key, parameter in models_apart[0].named_parameters()}
    for model, optimiser in zip(models_apart, optimisers, strict=True):
        nn.functional.cross_entropy(model.eval()(images), labels).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    matrices = [key for key, parameter in before.items() if parameter.dim() in (2, 4)]
    for key, parameter in models_apart[0].named_parameters():
        other = dict(models_apart[1].named_parameters())[key]
        assert torch.equal(parameter, other) == (key not in matrices[:-1]), key
    moved = dict(models_apart[0].named_parameters())[matrices[0]].detach() - before[matrices[0]]
    # Its singular values, about one each, times the learning rate and its factor.
    flat = moved.flatten(1)
    assert 0.5 < torch.linalg.matrix_norm(flat, 2) / (0.02 * max(1, flat.shape[0] / flat.shape[1]) ** 0.5) < 1.5


def test_which_recipe_uses_it() -> None:
    assert FAST.muon > 0
    assert PAPER.muon == 0
