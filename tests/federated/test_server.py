"""The server's step: FedSGD is large-batch SGD, FedAvg adds the mean change, buffers are averaged."""

from dataclasses import replace

import pytest
import torch

from gradveil.defences import build_defended
from gradveil.errors import DivergenceError
from gradveil.federated.server import Server, weighted_mean
from gradveil.rng import generator
from gradveil.types import ONE_GRADIENT, Update
from tests.federated.scenes import Trial, make_participants, small_data


def test_fedsgd_with_equal_shares_is_large_batch_sgd() -> None:
    """Against torch's own loss and optimiser, over three steps with momentum and weight decay."""
    participants = make_participants(batch_size=40)
    trained = Trial(participants).run()
    training = participants.settings.training
    model = build_defended(participants.spec, (), participants.settings.seed).train()
    optimiser = torch.optim.SGD(
        model.parameters(), lr=training.learning_rate, momentum=0.9, nesterov=True, weight_decay=training.weight_decay
    )
    images = small_data().train
    for step in range(3):
        optimiser.param_groups[0]["lr"] = training.rate(step, 3)
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.images.float() / 255), images.labels)
        torch.autograd.backward(loss)
        optimiser.step()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(trained[name], value, atol=1e-5, rtol=1e-5)
    start = participants.first_weights()
    assert any(not torch.allclose(trained[name], start[name], atol=1e-3) for name in trained)


def test_fedavg_adds_the_weighted_mean_of_the_changes() -> None:
    participants = make_participants(algorithm="fedavg", server_momentum=0.0)
    server = Server(participants, 3)
    before = server.weights()
    changes = [{name: torch.full_like(value, size) for name, value in server.trained().items()} for size in (1.0, 4.0)]
    buffers = server.buffers()
    local = participants.local(1, 3, 0)
    server.apply([Update(changes[0], 10, local, None, buffers), Update(changes[1], 20, local, None, buffers)], 1)
    for name in server.trained():
        torch.testing.assert_close(server.weights()[name], before[name] + 3.0)


def test_the_server_of_fedavg_keeps_its_momentum() -> None:
    participants = make_participants(algorithm="fedavg", server_momentum=0.5)
    server = Server(participants, 3)
    before, local = server.weights(), participants.local(1, 3, 0)
    ones = {name: torch.ones_like(value) for name, value in server.trained().items()}
    for number in (1, 2):
        server.apply([Update(ones, 10, local, None, server.buffers())], number)
    for name in server.trained():
        torch.testing.assert_close(server.weights()[name], before[name] + 1.0 + 1.5)


def test_buffers_are_averaged_and_keep_their_types() -> None:
    participants = make_participants(model="convnet-4", batch_size=10)
    assert participants.settings.local.mode == "train"
    server = Server(participants, 3)
    sent = server.weights()
    replies = [participants.client_round(client, 1, 3, sent).update for client in range(4)]
    server.apply(replies, 1)
    name = next(name for name in server.buffers() if name.endswith("running_mean"))
    mean = torch.stack([(reply.buffers or {})[name] for reply in replies]).mean(0)
    torch.testing.assert_close(server.buffers()[name], mean)
    tracked = name.replace("running_mean", "num_batches_tracked")
    assert (server.buffers()[tracked].dtype, int(server.buffers()[tracked])) == (torch.int64, 1)


def test_a_weighted_mean_keeps_the_type() -> None:
    values = [torch.randn(3, generator=generator(0, "mean")).half() for _ in range(2)]
    assert weighted_mean(values, [1, 3]).dtype == torch.float16
    assert weighted_mean([torch.tensor(1), torch.tensor(2)], [1, 1]).dtype == torch.int64


def test_diverged_weights_stop_the_run() -> None:
    participants = make_participants()
    steep = replace(participants.settings.training, learning_rate=1e38)
    server = Server(make_participants(training=steep), 3)
    huge = {name: torch.full_like(value, 1e3) for name, value in server.trained().items()}
    with pytest.raises(DivergenceError, match="round 1"):
        server.apply([Update(huge, 1, ONE_GRADIENT, None, server.buffers())], 1)
