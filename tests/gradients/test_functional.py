"""Gradients as functions: those of autograd, group by group, and the model is never changed."""

import copy

import torch

from gradveil.gradients import gradient, gradients_apart, loss_of_parameters, parameters_of
from gradveil.losses import CrossEntropy
from tests.gradients.models import build, make_images

LOSS = CrossEntropy()


def test_it_is_the_gradient_of_autograd() -> None:
    model = build("batch normalisation").eval()
    images, labels = make_images()
    found = gradient(model, LOSS, images, labels)
    expected = torch.autograd.grad(LOSS(model(images), labels), list(model.parameters()))
    assert list(found) == [name for name, _ in model.named_parameters()]
    for tensor, other in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(tensor, other)


def test_groups_have_a_gradient_each() -> None:
    model = build("kernels of all kinds")
    images, labels = make_images(4)
    apart = gradients_apart(model, LOSS, images.view(2, 2, *images.shape[1:]), labels.view(2, 2))
    for group in range(2):
        chosen = slice(2 * group, 2 * group + 2)
        alone = gradient(model, LOSS, images[chosen], labels[chosen])
        for name, tensor in apart.items():
            torch.testing.assert_close(tensor[group], alone[name])


def test_statistics_of_a_model_in_training_are_not_touched() -> None:
    model = build("batch normalisation").train()
    before = copy.deepcopy(model.state_dict())
    loss_of_parameters(model, LOSS)(parameters_of(model), *make_images())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_frozen_parameters_have_no_gradient() -> None:
    model = build("kernels of all kinds")
    first, *rest = [name for name, _ in model.named_parameters()]
    model.get_parameter(first).requires_grad_(False)
    assert list(parameters_of(model)) == list(gradient(model, LOSS, *make_images())) == rest
