"""The gradients of single images are autograd's, whichever way they are taken."""

import copy
from collections.abc import Callable

import pytest
import torch
from gradveil.scores.gradients import Apart, Gradients, LayerByLayer, OneByOne, choose_gradients
from gradveil.scores.layout import fits_channels_last
from torch import Tensor, nn

from gradveil import models, rng
from gradveil.errors import SettingsError

SHAPE = (3, 12, 12)


def stir(model: nn.Module) -> nn.Module:
    """Give every batch normalisation statistics and parameters of its own, one of them a dead channel."""
    source = rng.generator(0, "stir")
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean):
                assert tensor is not None
                tensor.data.normal_(generator=source)
            module.weight.data[0] = 0.0
            assert module.running_var is not None
            module.running_var.uniform_(0.2, 3, generator=source)
    return model


class Twice(nn.Module):
    """Use one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)
        self.head = nn.Linear(3 * 12 * 12, 4)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layer(self.layer(images).relu()).flatten(1))
        return logits


class Bypass(nn.Module):
    """Use what comes before a batch normalisation elsewhere, so that folding would be wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 4)

    def forward(self, images: Tensor) -> Tensor:
        found = self.layer(images)
        logits: Tensor = self.head((self.norm(found) + found).relu().mean((2, 3)))
        return logits


class Branching(nn.Module):
    """Look at the values, which cannot be vectorised."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.head = nn.Linear(3 * 12 * 12, 4)

    def forward(self, images: Tensor) -> Tensor:
        factor = self.scale if float(images.sum()) > 0 else -self.scale
        logits: Tensor = self.head(images.flatten(1) * factor)
        return logits


def sequential(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "kernels of all kinds": lambda: sequential(
        nn.Conv2d(3, 5, (3, 2), padding=(1, 0), bias=False),
        nn.ReLU(),
        nn.Conv2d(5, 6, 3, stride=(2, 1), padding=2, dilation=2),
        nn.ReLU(),
        nn.Conv2d(6, 3, 1),
    ),
    "batch normalisation": lambda: sequential(
        nn.Conv2d(3, 4, 3, bias=False),  # more positions than values in a window: folded
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=3),  # fewer: not folded
        nn.BatchNorm2d(8),
        nn.ReLU(),
    ),
    "linear layers on many rows": lambda: nn.Sequential(nn.Linear(12, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)),
    "strided shortcut of few channels": lambda: sequential(nn.Conv2d(3, 4, 1, stride=2), nn.ReLU()),
}


def build(name: str) -> nn.Module:
    with rng.global_state_from(rng.generator(0, "layers")):
        model = MODELS[name]()
        model(torch.rand(2, *SHAPE))  # a lazy layer learns its size
    return stir(model).double()


def images(count: int = 3) -> tuple[Tensor, Tensor]:
    source = rng.generator(0, "images")
    return torch.rand(count, *SHAPE, generator=source, dtype=torch.float64), torch.arange(count) % 4


def products(way: Gradients, count: int = 3) -> Tensor:
    """Take every inner product between the images' gradients, tensor by tensor, smallest tensors first."""
    found = [part @ part.T for part in way.walk(*images(count))]
    return torch.stack(sorted(found, key=lambda matrix: matrix.diagonal().tolist()))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", [LayerByLayer, Apart])
def test_every_way_gives_the_gradients_of_autograd(name: str, way: type[LayerByLayer] | type[Apart]) -> None:
    model = build(name)
    chosen = LayerByLayer(model, images()[0][:1]) if way is LayerByLayer else Apart(model)
    torch.testing.assert_close(products(chosen), products(OneByOne(model)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "way"),
    [
        (build("batch normalisation"), LayerByLayer),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(400, 4)).double(), Apart),
        (nn.Sequential(nn.Conv2d(3, 3, 3, groups=3), nn.Flatten(), nn.Linear(300, 4)).double(), Apart),
        (Twice().double(), Apart),
        (stir(Bypass()).double(), Apart),
        (Branching().double(), OneByOne),
    ],
    ids=["known layers", "in place", "groups", "used twice", "bypassed", "branching"],
)
def test_the_fastest_true_way_is_chosen(model: nn.Module, way: type[Gradients]) -> None:
    chosen = choose_gradients(model, *images())
    assert type(chosen) is way
    torch.testing.assert_close(products(chosen), products(OneByOne(model)), rtol=1e-9, atol=1e-12)


def test_normalisation_is_folded_where_that_pays() -> None:
    layers = LayerByLayer(build("batch normalisation"), images()[0][:1]).layers
    assert [type(layer).__name__ for layer in layers] == [
        "FoldedLayer",
        "FoldedLayer",
        "ConvolutionLayer",
        "BatchNormLayer",
        "LinearLayer",
    ]


def test_a_transformer_is_vectorised() -> None:
    model = models.build("vit-tiny", SHAPE, 4, (0.5,) * 3, (0.2,) * 3, rng.generator(0, "model")).double()
    assert type(choose_gradients(model, *images(1))) is Apart


def test_parameters_that_stand_still_do_not_count() -> None:
    model = build("kernels of all kinds")
    next(model.parameters()).requires_grad_(False)
    chosen = choose_gradients(model, *images())
    assert len(list(chosen.walk(*images()))) == len(list(model.parameters())) - 1
    with pytest.raises(SettingsError, match="none of whose parameters is trained"):
        choose_gradients(model.requires_grad_(False), *images())


def test_the_model_is_left_as_it_was() -> None:
    model = build("batch normalisation").train()
    before = copy.deepcopy(model.state_dict())
    list(choose_gradients(model, *images()).walk(*images()))
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_layout_that_torch_cannot_differentiate_is_avoided() -> None:
    assert not fits_channels_last(build("strided shortcut of few channels"))
    assert fits_channels_last(build("kernels of all kinds"))
