"""What the attacker computes for its own images is what a client would release for them."""

import copy

import pytest
import torch

from gradveil.attacks.rehearsal import Rehearsal
from gradveil.client import Client
from gradveil.rng import generator, split
from gradveil.types import ONE_GRADIENT, Batch, LocalTraining, Task
from tests.attacks.scenes import make_task, pictures


def release_apart(
    task: Task, local: LocalTraining, batch: Batch, place: int, source: torch.Generator
) -> dict[str, torch.Tensor]:
    model = copy.deepcopy(task.model)
    one = batch.take(slice(place, place + 1))
    return dict(Client(model, local).update(model.state_dict(), one, task.known_defences, source).tensors)


@pytest.mark.parametrize("model", ["lenet-relu", "convnet-2", "mlp"])
@pytest.mark.parametrize("known", [(), ("prune:50",), ("clip:0.1", "sign")])
def test_gradients_side_by_side_are_those_of_clients(model: str, known: tuple[str, ...]) -> None:
    task, batch = make_task(model, known=known), pictures(count=4)
    released = Rehearsal(task, ONE_GRADIENT, batch).release(batch, generator(0))
    for place in range(4):
        for name, tensor in release_apart(task, ONE_GRADIENT, batch, place, generator(1)).items():
            torch.testing.assert_close(released.tensors[name][place], tensor, rtol=1e-3, atol=1e-5)


def test_the_gradient_is_that_of_the_image_as_it_was_fed() -> None:
    task, batch = make_task(known=("policy:3-1-7",)), pictures(count=4)
    released = Rehearsal(task, ONE_GRADIENT, batch).release(batch, generator(0))
    again = Rehearsal(task, ONE_GRADIENT, batch).release(batch, generator(1))
    assert not torch.equal(released.fed.images, batch.pixels())
    assert not torch.equal(released.fed.images, again.fed.images), "every call draws afresh"
    for place in range(4):
        for name, tensor in release_apart(make_task(), ONE_GRADIENT, released.fed, place, generator(1)).items():
            torch.testing.assert_close(released.tensors[name][place], tensor, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("known", "local"),
    [
        (("crop-flip",), LocalTraining(steps=2)),
        (("dpsgd:noise=0.1:clip=1",), ONE_GRADIENT),
        ((), LocalTraining(mode="train")),
    ],
)
def test_whatever_needs_a_client_of_its_own_has_one(known: tuple[str, ...], local: LocalTraining) -> None:
    task, batch = make_task(known=known), pictures(count=3)
    released = Rehearsal(task, local, batch).release(batch, generator(0))
    for place, source in enumerate(split(generator(0), 3)):
        for name, tensor in release_apart(task, local, batch, place, source).items():
            assert torch.equal(released.tensors[name][place], tensor)


@pytest.mark.parametrize("known", [("crop-flip",), ()])
def test_clients_may_have_several_images(known: tuple[str, ...]) -> None:
    task, batch = make_task(known=known), pictures(count=6)
    released = Rehearsal(task, ONE_GRADIENT, batch, 3).release(batch, generator(0))
    fed = released.fed.take(slice(3, 6))
    model = copy.deepcopy(task.model)
    alone = Client(model, ONE_GRADIENT).update(model.state_dict(), fed, (), generator(1))
    assert torch.equal(fed.labels, batch.labels[3:])
    for name, tensor in alone.tensors.items():
        torch.testing.assert_close(released.tensors[name][1], tensor, rtol=1e-3, atol=1e-5)


def test_clients_with_several_images_may_take_steps() -> None:
    task, batch, local = make_task(), pictures(count=6), LocalTraining(steps=2, batch_size=2)
    released = Rehearsal(task, local, batch, 3).release(batch, generator(0))
    part, source = batch.take(slice(0, 3)), split(generator(0), 2)[0]
    model = copy.deepcopy(task.model)
    alone = Client(model, local).update(model.state_dict(), part, (), source)
    assert all(torch.equal(released.tensors[name][0], tensor) for name, tensor in alone.tensors.items())


def test_images_are_mixed_with_others() -> None:
    task, batch = make_task(known=("mixup:1",)), pictures(count=3)
    released = Rehearsal(task, ONE_GRADIENT, pictures(count=16)).release(batch, generator(0))
    assert not torch.equal(released.fed.images, batch.pixels())
    assert released.fed.images.shape == batch.images.shape
