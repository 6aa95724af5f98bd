"""Per-image gradients are those of autograd and of the client, whichever way they are computed."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradveil import models, rng
from gradveil.client import Client
from gradveil.errors import SettingsError
from gradveil.gradients import PerImageGradients, choose_gradients
from gradveil.gradients.per_image import LayerByLayer, OneByOne, Vectorised
from gradveil.losses import CrossEntropy, Loss
from gradveil.types import Batch, LocalTraining
from tests.gradients.models import MODELS, SHAPE, build, make_images, stir

PLAIN, SMOOTHED = CrossEntropy(), CrossEntropy(0.1)
WAYS: dict[str, Callable[[nn.Module, Loss, Tensor], PerImageGradients]] = {
    "layer by layer": LayerByLayer,
    "vectorised": lambda model, loss, _: Vectorised(model, loss),
    "one by one": lambda model, loss, _: OneByOne(model, loss),
}


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
        features = self.layer(images)
        logits: Tensor = self.head((self.norm(features) + features).relu().mean((2, 3)))
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


def products(way: PerImageGradients, count: int = 3) -> Tensor:
    """Take every inner product between the images' gradients, tensor by tensor, smallest tensors first."""
    matrices = [part @ part.T for part in way.walk(*make_images(count))]
    return torch.stack(sorted(matrices, key=lambda matrix: matrix.diagonal().tolist()))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["layer by layer", "vectorised"])
def test_every_way_computes_the_gradients_of_autograd(name: str, way: str) -> None:
    model = build(name)
    chosen = WAYS[way](model, PLAIN, make_images()[0][:1])
    torch.testing.assert_close(products(chosen), products(OneByOne(model, PLAIN)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("loss", [PLAIN, SMOOTHED], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_computes_what_the_client_releases(name: str, loss: Loss, way: str) -> None:
    """The client's update of one image is the gradient of that image, of the same loss, to 1e-6 relative."""
    model = build(name)
    images, labels = make_images()
    client = Client(model, LocalTraining(loss=loss))
    parts = list(WAYS[way](model, loss, images[:1]).walk(images, labels))
    for place in range(len(images)):
        batch = Batch(images[place : place + 1], labels[place : place + 1])
        update = client.update(model.state_dict(), batch, (), rng.generator(0, "update"))
        released = sorted_entries(list(update.tensors.values()))
        torch.testing.assert_close(sorted_entries([part[place] for part in parts]), released, rtol=1e-6, atol=1e-9)


def sorted_entries(tensors: list[Tensor]) -> Tensor:
    """Lay all entries out flat and sort them: their order is free."""
    return torch.cat([tensor.flatten() for tensor in tensors]).sort().values


@pytest.mark.parametrize(
    ("model", "way"),
    [
        (build("batch normalisation"), LayerByLayer),
        (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(400, 4)).double(),
            Vectorised,
        ),
        (nn.Sequential(nn.Conv2d(3, 3, 3, groups=3), nn.Flatten(), nn.Linear(300, 4)).double(), Vectorised),
        (Twice().double(), Vectorised),
        (stir(Bypass()).double(), Vectorised),
        (Branching().double(), OneByOne),
    ],
    ids=["known layers", "in place", "groups", "used twice", "bypassed", "branching"],
)
def test_the_fastest_true_way_is_chosen(model: nn.Module, way: type[PerImageGradients]) -> None:
    chosen = choose_gradients(model, PLAIN, *make_images())
    assert type(chosen) is way
    torch.testing.assert_close(products(chosen), products(OneByOne(model, PLAIN)), rtol=1e-9, atol=1e-12)


def test_a_transformer_is_vectorised() -> None:
    model = models.build("vit-tiny", SHAPE, 4, (0.5,) * 3, (0.2,) * 3, rng.generator(0, "model")).double()
    assert type(choose_gradients(model, PLAIN, *make_images(1))) is Vectorised


def test_parameters_that_stand_still_do_not_count() -> None:
    model = build("kernels of all kinds")
    next(model.parameters()).requires_grad_(False)
    chosen = choose_gradients(model, PLAIN, *make_images())
    assert len(list(chosen.walk(*make_images()))) == len(list(model.parameters())) - 1
    with pytest.raises(SettingsError, match="none of whose parameters is trained"):
        choose_gradients(model.requires_grad_(False), PLAIN, *make_images())


def test_the_model_is_left_as_it_was() -> None:
    model = build("batch normalisation").train()
    before = copy.deepcopy(model.state_dict())
    list(choose_gradients(model, PLAIN, *make_images()).walk(*make_images()))
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
