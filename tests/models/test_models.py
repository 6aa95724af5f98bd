"""Every model: its size, its shapes, its seed, and that gradients of gradients exist."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradveil import models
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.models.vit import VisionTransformer
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


def test_the_transformer_is_the_published_one_at_its_published_size() -> None:
    with torch.device("meta"):
        assert count(VisionTransformer((3, 224, 224), 1000, *COLOUR, patch=16)) == 5_717_416


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 45, 31), (3, 64, 64), (3, 96, 80)])
def test_any_channels_classes_and_sizes(name: str, shape: tuple[int, int, int]) -> None:
    model = build(name, shape).eval()
    assert model(torch.rand(2, *shape)).shape == (2, 7)


@pytest.mark.slow
def test_the_deepest_model_runs() -> None:
    assert build("resnet152", (1, 28, 28), 10).eval()(torch.rand(2, 1, 28, 28)).isfinite().all()


@pytest.mark.parametrize("name", SMALL)
def test_normalisation_is_the_first_layer(name: str) -> None:
    """Images of the mean colour must look like zeros to the rest of the model."""
    model = build(name).eval()
    first = next(child for child in model.children())
    assert isinstance(first, models.Normalise)
    mean = torch.tensor(COLOUR[0]).view(1, 3, 1, 1).expand(1, 3, 32, 32)
    assert torch.equal(first(mean), torch.zeros(1, 3, 32, 32))
    assert not any("normalise" in key for key in model.state_dict())


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


def test_residual_stages_halve_the_image() -> None:
    shapes: list[tuple[int, ...]] = []
    model = build("resnet20-1")
    for block in model.body:  # type: ignore[union-attr]
        block.register_forward_hook(lambda _m, _i, output: shapes.append(tuple(output.shape[1:])))
    model(torch.rand(2, 3, 32, 32))
    assert shapes == [(16, 32, 32)] * 3 + [(32, 16, 16)] * 3 + [(64, 8, 8)] * 3


def test_attention_is_what_torch_computes() -> None:
    from gradveil.models.vit import Attention

    tokens = torch.rand(2, 5, 12, generator=generator(0, "tokens"))
    ours = Attention(12, 3)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True)
    theirs.load_state_dict(
        {
            "in_proj_weight": ours.project.weight,
            "in_proj_bias": ours.project.bias,
            "out_proj.weight": ours.merge.weight,
            "out_proj.bias": ours.merge.bias,
        }
    )
    torch.testing.assert_close(ours(tokens), theirs(tokens, tokens, tokens)[0])


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
    with pytest.raises(SettingsError, match="extra"):
        models.ModelSpec.from_record({**record, "extra": 1})
    with pytest.raises(SettingsError, match="described by"):
        models.ModelSpec.from_record({**record, "classes": "ten"})


OWN = """
from torch import nn
def good(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], classes))
def narrow(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(7, classes))
def short(shape, classes, mean, std):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], 3))
def nothing(shape, classes, mean, std):
    return None
number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_models.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)


@pytest.mark.usefixtures("own")
def test_a_factory_of_ones_own() -> None:
    assert build("own_models:good")(torch.rand(4, 3, 32, 32)).shape == (4, 7)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narrow", "fails on images"),
        ("short", r"\(2, 3\): it must give logits of shape \(2, 7\)"),
        ("nothing", "NoneType"),
        ("number", "int: it must be a function"),
        ("missing", "cannot be imported"),
    ],
)
def test_a_wrong_factory_is_refused(name: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build(f"own_models:{name}")


@pytest.mark.parametrize("name", ["no_such_module:make", ":make", "torch:"])
def test_a_factory_that_cannot_be_imported_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be imported"):
        build(name)
