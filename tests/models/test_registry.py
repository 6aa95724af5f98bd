"""Models by name: sizes, shapes, seeds, second derivatives, and specifications as JSON."""

import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradveil import models
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.rng import generator

COLOUR = (0.5, 0.4, 0.3), (0.2, 0.2, 0.3)
# Trainable parameters for colour images of 32×32 and 100 classes. Published or computable by hand: ConvNet and
# ResNet20-4 in the papers, ResNet-18 and -152 from torchvision's 11,689,512 and 60,192,808 for 1,000 classes, less the
# larger stem and the 900 classes.
SIZES = {
    "lenet": 88_648,
    "mlp": 1_887_332,
    "convnet-64": 3_112_420,
    "convnet9-64": 3_703_012,
    "resnet20-1": 278_324,
    "resnet20-4": 4_350_884,
    "resnet18": 11_689_512 - 64 * 3 * (49 - 9) - 900 * 513,
    "resnet18-w128": 44_755_172,
    "resnet152": 60_192_808 - 64 * 3 * (49 - 9) - 900 * 2049,
    "resnet152-w16": 3_713_524,
    "vit-tiny": 5_380_132,
}
SMALL = ("lenet", "lenet-relu", "mlp", "convnet-2", "convnet9-2", "resnet20-1", "resnet18-w2", "vit-tiny")


def build(name: str, shape: tuple[int, int, int] = (3, 32, 32), classes: int = 7, seed: int = 0) -> nn.Module:
    mean, std = (part[: shape[0]] for part in COLOUR)
    return models.build(name, shape, classes, mean, std, generator(seed, "model"))


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", SIZES)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        assert count(models.factory(name)((3, 32, 32), 100, *COLOUR)) == SIZES[name]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 45, 31), (3, 64, 64), (3, 96, 80)])
def test_any_channels_classes_and_sizes(name: str, shape: tuple[int, int, int]) -> None:
    model = build(name, shape).eval()
    assert model(torch.rand(2, *shape)).shape == (2, 7)


@pytest.mark.slow
def test_the_deepest_model_runs() -> None:
    assert build("resnet152", (1, 28, 28), 10).eval()(torch.rand(2, 1, 28, 28)).isfinite().all()


@pytest.mark.parametrize("name", SMALL)
def test_the_seed_decides_the_weights(name: str) -> None:
    before = torch.get_rng_state()
    first, second, other = (build(name, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", SMALL)
def test_the_gradient_can_be_differentiated(name: str) -> None:
    """Gradient matching needs it; fused kernels often lack it."""
    model = build(name).eval()
    images = torch.rand(2, 3, 32, 32, generator=generator(0, "images")).requires_grad_()
    loss = F.cross_entropy(model(images), torch.tensor([1, 2]))
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    (second,) = torch.autograd.grad(sum((part**2).sum() for part in gradients), images)  # type: ignore[arg-type]
    assert second.isfinite().all()
    assert second.abs().max() > 0


@pytest.mark.parametrize("name", ["resnet21", "convnet-", "convnet-W", "convnet-0", "convnet-16x", "resnet18-64", ""])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="choose from"):
        models.factory(name)


@pytest.mark.parametrize(
    ("shape", "classes", "channels", "message"),
    [
        ((3, 8, 32), 10, 3, "9 pixels a side"),
        ((3, 32, 32), 1, 3, "at least 2"),
        ((3, 32, 32), 10, 1, "1 means and 1 deviations for 3 channels"),
    ],
)
def test_impossible_models_are_refused(shape: tuple[int, int, int], classes: int, channels: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        models.ModelSpec("lenet", shape, classes, (0.5,) * channels, (0.2,) * channels)


def test_a_specification_goes_through_json() -> None:
    spec = models.ModelSpec("convnet-16", (3, 32, 32), 10, *COLOUR)
    record = spec.to_record()
    assert models.ModelSpec.from_record(record) == spec
    with pytest.raises(UnknownNameError, match="unknown model setting 'extra'"):
        models.ModelSpec.from_record({**record, "extra": 1})
    for wrong in ({"classes": "ten"}, {"shape": [3, 32]}, {"shape": 3}, {"mean": ["red"]}, {"name": 3}):
        with pytest.raises(SettingsError):
            models.ModelSpec.from_record({**record, **wrong})
    record.pop("classes")
    with pytest.raises(SettingsError, match="cannot be read"):
        models.ModelSpec.from_record(record)


class Plain(nn.Module):
    """A module as a person has it: batch normalisation, no normalisation of pixels."""

    def __init__(self, classes: int = 7) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * 30 * 30, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.body(images))
        return logits


class mlp(Plain):  # noqa: N801
    """Has the name of one of ours."""


def describe(module: nn.Module) -> models.ModelSpec:
    return models.ModelSpec.of(module, (3, 32, 32), 7, *COLOUR)


def test_a_ready_module_is_built_as_a_copy_with_its_weights() -> None:
    module = Plain()
    spec = describe(module)
    assert spec.name == "Plain"
    first, second = (pickle.loads(pickle.dumps(spec)).build(generator(seed)) for seed in (0, 1))
    assert first is not module
    for copy in (first, second):
        assert all(torch.equal(ours, copy.state_dict()[name]) for name, ours in module.state_dict().items())
    with torch.no_grad():
        module.head.weight.zero_()
        first.head.weight.zero_()
    assert spec.build(generator(0)).head.weight.abs().max() > 0  # type: ignore[union-attr, operator]


def test_a_ready_module_is_checked() -> None:
    module = Plain(classes=3)
    with pytest.raises(SettingsError, match=r"'Plain' turns two images into \(2, 3\)"):
        describe(module)
    with pytest.raises(SettingsError, match="'Plain' fails on images"):
        models.ModelSpec.of(module, (3, 16, 16), 3, *COLOUR)


@pytest.mark.parametrize("module", [Plain(), mlp()])
def test_the_record_of_a_ready_module_cannot_be_built_later(module: nn.Module) -> None:
    record = describe(module).to_record()
    assert set(record) == {"name", "shape", "classes", "mean", "std"}
    with pytest.raises(SettingsError, match=r"unknown model '.*'.*must be given again$"):
        models.ModelSpec.from_record(record)
