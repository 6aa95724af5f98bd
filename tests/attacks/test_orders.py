"""The order in which a client used its images."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks.orders import (
    Order,
    OrderSearch,
    count_uses,
    keep_different,
    order_is_known,
    order_matters,
    swapped,
    unroll,
)
from gradveil.client import Simulation
from gradveil.errors import KnowledgeError
from gradveil.rng import generator
from gradveil.types import LocalTraining
from tests.attacks.scenes import make_task, pictures, release

FOUR = LocalTraining(steps=4, batch_size=1, learning_rate=0.1)


def test_an_order_matters_if_a_step_uses_a_part_of_the_images() -> None:
    task = make_task()
    assert not order_matters(release(task, count=3))
    assert not order_matters(release(task, count=3, local=LocalTraining(steps=2)))
    assert order_matters(release(task, count=4, local=FOUR))


def test_labels_tell_the_order_unless_the_client_shuffles() -> None:
    task = make_task()
    assert order_is_known(release(task, count=4, local=FOUR))
    assert not order_is_known(release(task, count=4, local=FOUR, share_labels=False))
    assert not order_is_known(release(task, count=4, local=replace(FOUR, shuffle=True)))


def test_unrolled_work_is_the_same_work() -> None:
    task = make_task()
    for local in (LocalTraining(steps=5, batch_size=2), LocalTraining(epochs=2, batch_size=2, momentum=0.9)):
        update = release(task, count=4, local=local)
        unrolled = unroll(update)
        uses = pictures().take(torch.arange(count_uses(update)) % 4)
        ours = Simulation(task.model, task.loss, unrolled.local, task.shape)(uses.pixels()[None], uses.labels[None])
        for name, tensor in update.tensors.items():
            torch.testing.assert_close(ours[name][0].detach(), tensor, rtol=1e-3, atol=1e-6)


def test_work_that_cannot_be_unrolled_is_refused() -> None:
    task = make_task()
    with pytest.raises(KnowledgeError, match="equally large"):
        unroll(release(task, count=3, local=LocalTraining(epochs=2, batch_size=2)))
    with pytest.raises(KnowledgeError, match="only 2 were used"):
        unroll(release(task, count=3, local=LocalTraining(steps=2, batch_size=1)))


def make_search() -> tuple[OrderSearch, Order]:
    """Make a search among the true images, and the true order."""
    task = make_task()
    batch = pictures().take(torch.arange(4))
    search = OrderSearch(task, unroll(release(task, count=4, local=FOUR)), 4)
    loss = float(search.losses(batch.pixels()[None], batch.labels[None])[0])
    return search, Order(batch.pixels(), batch.labels, loss)


def test_swaps_find_the_true_order_of_true_images() -> None:
    search, true = make_search()
    assert true.loss < 1e-5
    wrong = torch.tensor([1, 0, 3, 2])
    images, labels = true.images[wrong], true.labels[wrong]
    loss = float(search.losses(images[None], labels[None])[0])
    assert loss > 100 * max(true.loss, 1e-7)
    found = search.improve(Order(images, labels, loss), generator(0))
    assert torch.equal(found.images, true.images)
    assert found.loss < 1e-5


def test_orders_hold_every_label_in_every_pass() -> None:
    search, true = make_search()
    search.uses = 10
    drawn = search.draw(true.labels, generator(0))
    assert len(drawn) == 10
    for first in (0, 4):
        assert sorted(drawn[first : first + 4].tolist()) == sorted(true.labels.tolist())


def test_the_best_orders_come_first_and_once() -> None:
    search, true = make_search()
    begun = search.begin(true.labels, 20, 4, generator(0))
    assert [one.loss for one in begun] == sorted(one.loss for one in begun)
    assert len({tuple(one.labels.tolist()) for one in begun}) == len(begun)
    assert len(keep_different([*begun, *begun])) == len(begun)
    again = search.begin(true.labels, 20, 4, generator(0))
    assert [one.labels.tolist() for one in again] == [one.labels.tolist() for one in begun]


def test_without_public_images_the_mean_colour_stands_in() -> None:
    search, _ = make_search()
    search.task = replace(search.task, public=None)
    assert torch.equal(search.stand_ins()[0], search.stand_ins()[1])
    assert search.stand_ins().shape == (10, *search.task.shape)


def test_swaps_stay_within_a_pass_and_change_something() -> None:
    search, true = make_search()
    search.uses = 8
    labels = true.labels.repeat(2)
    for one, other in search.draw_swaps(labels, generator(0)):
        assert one // 4 == other // 4
        assert labels[one] != labels[other]
    assert swapped(4, 0, 3).tolist() == [3, 1, 2, 0]
