"""Labels read from an update."""

from dataclasses import replace

import pytest
import torch

from gradveil.attacks import find_labels, restore_counts
from gradveil.attacks.labels import add_up_steps, check_labels, read_label, whole_counts
from gradveil.errors import KnowledgeError
from gradveil.rng import generator
from gradveil.types import LocalTraining, Update
from tests.attacks.scenes import make_task, pictures, release, sample, sample_task, take, update_of


@pytest.mark.parametrize("model", ["lenet-relu", "convnet-16"])
def test_labels_of_a_batch_are_restored_with_their_repeats(model: str) -> None:
    task = sample_task(model)
    exact = 0
    for trial in range(20):
        # Draws from four classes only, so that most batches of 8 hold repeats.
        few = (sample().test.labels < 4).nonzero().flatten()
        images = few[torch.randperm(len(few), generator=generator(trial, "batch"))[:8]].tolist()
        hidden = update_of(task, take(images), share_labels=False)
        true = torch.bincount(take(images).labels, minlength=sample().classes)
        exact += torch.equal(restore_counts(task, hidden), true)
        assert int(true.max()) > 1
    assert exact >= 18


def test_labels_of_single_images_are_read() -> None:
    task = sample_task()
    for image in range(20):
        assert torch.equal(find_labels(task, update_of(task, take([image]), share_labels=False)), take([image]).labels)


def test_labels_are_read_from_a_weight_change() -> None:
    task = make_task()
    hidden = release(task, 3, local=LocalTraining(steps=3, learning_rate=0.01, batch_size=1), share_labels=False)
    assert find_labels(task, hidden).tolist() == pictures().labels[3:4].tolist()


def test_labels_that_came_with_the_update_are_taken() -> None:
    task = make_task()
    sent = replace(release(task), labels=torch.tensor([9], dtype=torch.uint8))
    assert find_labels(task, sent).tolist() == [9]
    assert find_labels(task, sent).dtype == torch.int64


def test_rounding_keeps_the_number_of_images() -> None:
    for count in (1, 5, 8):
        assert int(whole_counts(torch.rand(7, generator=generator(count)), count).sum()) == count


def test_what_cannot_be_read_is_refused() -> None:
    task = make_task()
    with pytest.raises(KnowledgeError, match="1 image only"):
        read_label(task, release(task, count=2, share_labels=False))
    headless = replace(release(task, share_labels=False), tensors={"a": torch.ones(3)})
    with pytest.raises(KnowledgeError, match="one entry per class"):
        check_labels(task, headless)
    check_labels(task, replace(headless, labels=torch.tensor([1])))


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_repeats_steps(nesterov: bool) -> None:
    local = LocalTraining(steps=3, momentum=0.5, nesterov=nesterov)
    update = Update({"weight": torch.zeros(1)}, 1, local)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([weight], lr=1.0, momentum=0.5, nesterov=nesterov)
    for _ in range(3):
        weight.grad = torch.ones(1)
        optimiser.step()
    assert add_up_steps(update) == pytest.approx(-float(weight.detach()))
