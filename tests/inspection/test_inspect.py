"""Honest models raise no alarm; planted ones do, for the right reason."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil import data
from gradveil.inspection import Inspection, choose_images, inspect_model
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST, train
from tests.inspection.planted import plant_fishing, plant_imprint, plant_traps

GREY = ((1, 28, 28), 10, (0.29,), (0.35,))
COLOUR = ((3, 32, 32), 100, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))


def look(model: nn.Module, spec: ModelSpec) -> Inspection:
    return inspect_model(model, CrossEntropy(), choose_images(spec, None))


@pytest.mark.parametrize("name", ["mlp", "lenet", "lenet-relu", "convnet-4", "resnet20-1", "resnet18-w2"])
def test_a_fresh_model_is_like_an_honest_one(name: str) -> None:
    spec = ModelSpec(name, *(COLOUR if name.startswith("resnet") else GREY))
    found = look(spec.build(generator(0, "model")), spec)
    assert found.odd == ()
    assert found.verdict == "Nothing odd found."


@pytest.mark.parametrize("name", ["lenet", "lenet-relu"])
def test_a_trained_model_is_like_an_honest_one(name: str) -> None:
    sample = data.load("fashion-mnist-sample")
    spec = ModelSpec(name, sample.shape, sample.classes, sample.mean, sample.std)
    model = spec.build(generator(0, "model"))
    train(model, sample, replace(FAST, epochs=2, threads=1, fraction=0.2), seed=0)
    assert look(model, spec).odd == ()


def test_the_only_image_of_a_class_is_no_alarm_in_the_output() -> None:
    spec = ModelSpec("lenet", *GREY)
    found = look(spec.build(generator(2, "model")), spec)
    assert found.layers[-2].name == "head.weight"
    assert found.layers[-2].isolation is not None
    assert found.layers[-2].isolation.alone == 0


def first_layer(model: nn.Module) -> nn.Linear:
    return next(layer for layer in model.modules() if isinstance(layer, nn.Linear))


def head(model: nn.Module) -> nn.Linear:
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]


def imprint(model: nn.Module, spec: ModelSpec) -> None:
    plant_imprint(first_layer(model), spec, choose_images(spec, None, seed=1))


def imprint_of_a_direction(model: nn.Module, spec: ModelSpec) -> None:
    direction = torch.randn(784, generator=torch.Generator().manual_seed(0))
    plant_imprint(first_layer(model), spec, choose_images(spec, None, seed=1), direction)


def traps(model: nn.Module, spec: ModelSpec) -> None:
    plant_traps(first_layer(model), spec, 0.95, torch.Generator().manual_seed(0))


def deep_traps(model: nn.Module, spec: ModelSpec) -> None:
    plant_traps(first_layer(model), spec, 0.7, torch.Generator().manual_seed(0))


def fishing(model: nn.Module, spec: ModelSpec) -> None:  # noqa: ARG001
    plant_fishing(head(model))


def huge(model: nn.Module, spec: ModelSpec) -> None:  # noqa: ARG001
    with torch.no_grad():
        first_layer(model).weight.mul_(1000)


@pytest.mark.parametrize(
    ("plant", "where", "reason"),
    [
        (imprint, "body.1.weight", "scaled copies of others, as in an imprint"),
        (imprint, "body.1.weight", "one value throughout"),
        (imprint, "body.1.weight", "the biases are in strict order"),
        (imprint_of_a_direction, "body.1.weight", "scaled copies of others, as in an imprint"),
        (traps, "body.1.weight", "mirror each other, as trap weights"),
        (deep_traps, "body.1.weight", "hear one image of a batch alone"),
        (fishing, "body.1.weight", "one image outweighs all others"),
        (huge, "body.1.weight", "median length"),
    ],
)
def test_a_planted_model_is_found(plant: Callable[[nn.Module, ModelSpec], None], where: str, reason: str) -> None:
    spec = ModelSpec("mlp", *GREY)
    model = spec.build(generator(0, "model"))
    plant(model, spec)
    found = look(model, spec)
    layer = next(layer for layer in found.odd if layer.name == where)
    assert any(reason in text for text in layer.reasons)
    assert found.verdict.startswith("Odd: ")
    json.dumps(found.to_record(), allow_nan=False)


def test_images_take_the_shape_of_the_model() -> None:
    images = choose_images(ModelSpec("mlp", *COLOUR), None)
    assert images.shape == (64, 3, 32, 32)
    assert 0 <= float(images.min()) <= float(images.max()) <= 1
