"""Rounds: what was released, aggregated or not, and the task that the attacker makes of it."""

import torch

from gradveil.client import Client
from gradveil.defences import build_defended, parse_arm
from gradveil.losses import CrossEntropy
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.rounds import Round, aggregate
from gradveil.types import Batch, LocalTraining, Update

SPEC = ModelSpec("convnet-2", (1, 12, 12), 4, (0.5,), (0.5,))
LOCAL = LocalTraining(loss=CrossEntropy(0.1))


def batch(labels: list[int]) -> Batch:
    return Batch(torch.rand(len(labels), 1, 12, 12, generator=generator(1)), torch.tensor(labels))


def release(images: Batch, share_labels: bool = True, local: LocalTraining = LOCAL) -> Update:
    model = SPEC.build(generator(0))
    return Client(model, local).update(model.state_dict(), images, (), generator(0), share_labels=share_labels)


def test_the_aggregate_is_the_gradient_of_all_images_together() -> None:
    everyone = batch([2, 0, 2])
    mean = aggregate([release(everyone.take(slice(place, place + 1))) for place in range(3)])
    together = release(everyone)
    assert mean.images == 3
    assert mean.labels is not None
    assert mean.labels.tolist() == [2, 0, 2]
    for name, tensor in together.tensors.items():
        torch.testing.assert_close(mean.tensors[name], tensor, rtol=1e-4, atol=1e-7)


def test_one_hidden_label_hides_them_all() -> None:
    assert aggregate([release(batch([1]), shared) for shared in (True, False)]).labels is None


def test_buffers_are_averaged_as_floats_and_keep_their_types() -> None:
    local = LocalTraining(mode="train")
    updates = [release(batch([0, 1]), local=local), release(batch([2, 3]), local=local)]
    mean = aggregate(updates)
    assert mean.buffers is not None
    for name, tensor in mean.buffers.items():
        singles = [update.buffers[name] for update in updates if update.buffers is not None]
        assert tensor.dtype == singles[0].dtype
        torch.testing.assert_close(tensor.double(), torch.stack([one.double() for one in singles]).mean(0))


def test_the_task_holds_the_weights_that_were_sent_and_what_is_known() -> None:
    defences = parse_arm("precode:width=4,gaussian:1").defences
    model = build_defended(SPEC, defences, 5)
    weights = model.state_dict()
    update = Client(model, LOCAL).update(weights, batch([1]), defences, generator(0))
    changing = tuple(defence for defence in defences if "model" in defence.hooks)
    captured = Round(SPEC, changing, weights, update, defences, 1, "init", 7)
    task = captured.task(None, "cpu")
    assert all(torch.equal(tensor, weights[name]) for name, tensor in task.model.state_dict().items())
    assert not task.model.training
    assert task.loss == CrossEntropy(0.1)
    assert task.known_defences == defences
