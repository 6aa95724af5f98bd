"""Features of every image of a batch, off the gradient of a linear layer."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from gradveil.attacks.analytic import input_of
from gradveil.attacks.separation import Rest, Separated, Separator
from gradveil.rng import generator
from gradveil.types import Batch, Task
from tests.attacks.scenes import CLASSES, SIDE, plain_task, sample_task, take, update_of


def separate(task: Task, batch: Batch, layer: str, share_labels: bool = True) -> Separated:
    update = update_of(task, batch, share_labels=share_labels)
    return Separator(task, update, layer, 2**14).separate(generator(0))


def likeness(found: Separated, task: Task, batch: Batch, layer: str) -> Tensor:
    """Return, for each image, the cosine between its features and the nearest ones that were found."""
    truth = functional.normalize(input_of(task.model, layer, batch.pixels()).double())
    return (functional.normalize(found.features) @ truth.T).amax(0)


@pytest.mark.parametrize("share_labels", [True, False])
def test_features_of_the_last_layer_are_exact_where_they_are_sparse(share_labels: bool) -> None:
    task, batch = sample_task(), take(range(30, 38))
    found = separate(task, batch, "head", share_labels)
    assert found.exact
    assert found.way == "sparse features"
    assert float(likeness(found, task, batch, "head").min()) > 0.999
    assert sorted(found.labels.tolist()) == sorted(batch.labels.tolist())


def test_features_have_the_labels_of_their_images() -> None:
    task, batch = sample_task(), take(range(30, 36))
    found = separate(task, batch, "head")
    truth = functional.normalize(input_of(task.model, "head", batch.pixels()).double())
    places = (functional.normalize(found.features) @ truth.T).argmax(1)
    assert torch.equal(found.labels, batch.labels[places])


def wide_model(activation: type[nn.Module]) -> nn.Module:
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), activation(), nn.Flatten(), nn.Linear(8 * 36, 64), activation(), nn.Linear(64, 10)
    )
    torch.random.set_rng_state(torch_state)
    return layers.eval()


def small_batch(count: int) -> Batch:
    images = take(range(count))
    return Batch(images.images[:, :, 8 : 8 + SIDE, 8 : 8 + SIDE], images.labels)


def test_a_hidden_layer_is_taken_apart_by_what_is_sparse() -> None:
    task, batch = plain_task(wide_model(nn.ReLU), CLASSES), small_batch(6)
    found = separate(task, batch, "3")
    assert found.exact
    assert found.way.startswith("sparse")
    assert float(likeness(found, task, batch, "3").min()) > 0.999


def test_labels_that_differ_tell_features_apart_that_are_not_sparse() -> None:
    task, images = plain_task(wide_model(nn.Tanh), CLASSES), small_batch(16)
    places = [int((images.labels == label).nonzero()[0]) for label in sorted(set(images.labels.tolist()))[:4]]
    batch = images.take(torch.tensor(places))
    found = separate(task, batch, "5")
    assert found.exact
    assert found.way.endswith("a fixed point")
    assert float(likeness(found, task, batch, "5").min()) > 0.999


def test_what_is_not_exact_is_not_called_so() -> None:
    task, batch = plain_task(wide_model(nn.Tanh), CLASSES), small_batch(8)
    found = separate(task, batch, "3")
    assert found.way == "independent components"
    assert not found.exact
    assert float(likeness(found, task, batch, "3").min()) < 0.999


def test_the_rest_of_a_network_gives_the_slopes_of_the_whole() -> None:
    task, batch = plain_task(wide_model(nn.ReLU), CLASSES), small_batch(3)
    features = input_of(task.model, "3", batch.pixels())
    slopes = Rest(task, "3", 3).slopes(features, batch.labels)
    torch.testing.assert_close(slopes.sum(0).float(), update_of(task, batch).tensors["3.bias"], rtol=1e-4, atol=1e-7)
