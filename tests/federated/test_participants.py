"""Participants: who has which images, and what each releases in a round."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from gradveil.audit.preflight import preflight
from gradveil.client import Client, make_optimiser
from gradveil.defences import build_defended
from gradveil.federated.participants import Participants, copy_tensors
from gradveil.federated.server import Server
from gradveil.federated.settings import FEDAVG, FederatedSettings
from gradveil.rng import generator
from gradveil.rounds import Captured
from gradveil.training import FAST, PAPER, train
from gradveil.types import Batch, LocalTraining
from tests.federated.small_data import make_data

DATA = make_data(train=96)
SETTINGS = FederatedSettings(data="small", model="convnet-2", clients=4, arm="none", batch_size=6)


def test_every_image_belongs_to_one_participant() -> None:
    participants = Participants(SETTINGS, DATA)
    assert sorted(torch.cat(participants.shares).tolist()) == list(range(96))
    assert [len(share) for share in participants.shares] == [24] * 4
    taken = participants.share(2)
    assert torch.equal(taken.labels, DATA.train.labels[participants.shares[2]])


def test_the_partition_depends_on_the_seed_alone() -> None:
    first, same, other = (Participants(replace(SETTINGS, seed=seed), DATA).shares for seed in (0, 0, 1))
    assert all(map(torch.equal, first, same))
    assert not all(map(torch.equal, first, other))


def test_the_first_weights_are_those_of_centralised_training() -> None:
    participants = Participants(replace(SETTINGS, arm="precode:width=4", seed=3), DATA)
    expected = build_defended(participants.spec, participants.arm.defences, 3).state_dict()
    weights = participants.first_weights()
    assert all(torch.equal(weights[name], tensor) for name, tensor in expected.items())
    assert weights.keys() == expected.keys()


def test_fedsgd_uses_every_image_of_a_share_once_an_epoch_in_a_new_order() -> None:
    participants = Participants(SETTINGS, DATA)
    epochs = [
        torch.cat([participants.places(1, number) for number in range(first, first + 4)]).tolist() for first in (1, 5)
    ]
    for places in epochs:
        assert sorted(places) == participants.shares[1].tolist()
    assert epochs[0] != epochs[1]


def test_fedsgd_with_a_share_smaller_than_a_batch_takes_all_of_it() -> None:
    participants = Participants(replace(SETTINGS, batch_size=100), DATA)
    assert sorted(participants.places(0, 3).tolist()) == participants.shares[0].tolist()


def test_fedavg_takes_the_whole_share_and_its_rate_falls_to_zero() -> None:
    local = replace(FEDAVG, epochs=1, steps=None, learning_rate=0.05)
    participants = Participants(replace(SETTINGS, algorithm="fedavg", local=local), DATA)
    rounds = [participants.places(3, number).tolist() for number in (1, 2)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == participants.shares[3].tolist()
    assert rounds[0] != rounds[1]
    rates = [participants.local(number, 4, 0).learning_rate for number in range(1, 5)]
    assert rates == pytest.approx([0.05, 0.0375, 0.025, 0.0125])


STEPS = LocalTraining(steps=2, batch_size=3, learning_rate=0.1, shuffle=True)


def test_fedavg_with_few_steps_names_the_images_that_it_used_only() -> None:
    participants = Participants(replace(SETTINGS, algorithm="fedavg", local=STEPS), DATA)
    weights = participants.first_weights()
    released = [participants.client_round(1, number, 4, weights) for number in range(1, 5)]
    assert [one.update.images for one in released] == [6] * 4
    named = [[truth.image for truth in one.truths] for one in released]
    assert sorted(image for one in named for image in one) == participants.shares[1].tolist()
    assert not released[0].update.local.shuffle


def test_the_attackers_simulation_repeats_a_fedavg_of_few_steps() -> None:
    participants = Participants(replace(SETTINGS, algorithm="fedavg", local=STEPS), DATA)
    weights = participants.first_weights()
    released = participants.client_round(1, 2, 4, weights)
    captured = Captured(participants.round_of(1, 2, weights, released.update), released.truths)
    found = preflight(captured.round.task(None, "cpu"), captured.transformed(), released.update)
    assert found.agrees
    assert found.notices == ()


@pytest.mark.parametrize(
    ("arm", "local"),
    [
        ("none", replace(STEPS, steps=9)),
        ("none", replace(STEPS, steps=None, epochs=2)),
        ("none", replace(STEPS, steps=8, shuffle=False)),
        ("dpsgd:noise=1:clip=1", STEPS),
    ],
    ids=["several passes", "two epochs", "own order", "independent draws"],
)
def test_fedavg_otherwise_works_on_the_whole_share_in_its_own_way(arm: str, local: LocalTraining) -> None:
    participants = Participants(replace(SETTINGS, algorithm="fedavg", local=local, arm=arm), DATA)
    assert torch.equal(participants.places(2, 3), participants.shares[2])
    assert participants.count_images(2) == 24
    assert participants.local(1, 1, 2).shuffle == local.shuffle


def test_images_of_the_round_are_mixed_with_others_of_the_client() -> None:
    participants = Participants(replace(SETTINGS, arm="mixup:1"), DATA)
    places = participants.places(1, 1)
    expected = [place for place in participants.shares[1].tolist() if place not in places.tolist()]
    assert torch.equal(participants.others(1, places).labels, DATA.train.labels[expected])
    assert len(participants.others(1, participants.shares[1])) == 24


def test_a_share_smaller_than_a_local_batch_makes_the_batch_smaller() -> None:
    settings = replace(SETTINGS, algorithm="fedavg", local=LocalTraining(steps=2, batch_size=32))
    participants = Participants(settings, DATA)
    assert participants.local(1, 1, 0).batch_size == 24
    released = participants.client_round(0, 1, 1, participants.first_weights())
    assert released.update.images == 24


def test_a_round_does_not_depend_on_the_rounds_of_others() -> None:
    settings = replace(SETTINGS, arm="crop-flip,gaussian:0.01")
    alone, busy = Participants(settings, DATA), Participants(settings, DATA)
    weights = alone.first_weights()
    for client in (0, 1, 3):
        busy.client_round(client, 1, 9, weights)
    ours, theirs = (one.client_round(2, 1, 9, weights) for one in (alone, busy))
    assert all(torch.equal(ours.update.tensors[name], tensor) for name, tensor in theirs.update.tensors.items())
    assert ours.loss == theirs.loss
    again = busy.client_round(2, 2, 9, weights)
    assert any(not torch.equal(ours.update.tensors[name], tensor) for name, tensor in again.update.tensors.items())


def test_no_label_leaves_the_client_and_the_truth_is_its_own_images() -> None:
    participants = Participants(replace(SETTINGS, arm="crop-flip"), DATA)
    released = participants.client_round(1, 1, 9, participants.first_weights())
    assert released.update.labels is None
    assert released.update.images == 6
    assert [truth.image for truth in released.truths] == participants.places(1, 1).tolist()
    for truth in released.truths:
        assert truth.label == int(DATA.train.labels[truth.image])
        assert torch.equal(truth.original, DATA.train.images[truth.image][None].float() / 255)
    assert any(not torch.equal(truth.original, truth.transformed) for truth in released.truths)


def test_the_update_is_the_clients_gradient_of_what_it_was_fed() -> None:
    participants = Participants(replace(SETTINGS, arm="crop-flip"), DATA)
    weights = participants.first_weights()
    released = participants.client_round(1, 1, 9, weights)
    fed = Batch(
        torch.cat([truth.transformed for truth in released.truths]),
        torch.tensor([truth.fed_label for truth in released.truths]),
    )
    model = participants.spec.build(generator(0))
    again = Client(model, SETTINGS.works).update(weights, fed, (), generator(0))
    for name, tensor in again.tensors.items():
        torch.testing.assert_close(released.update.tensors[name], tensor)


@pytest.mark.parametrize("recipe", [PAPER, FAST], ids=["paper", "fast"])
@pytest.mark.parametrize("model", ["lenet-relu", "convnet-2"])
def test_fedsgd_with_equal_shares_is_large_batch_training(recipe: Any, model: str) -> None:
    # Batch normalisation in training mode depends on who shares a batch: eval mode compares like with like.
    settings = replace(SETTINGS, model=model, training=recipe, local=replace(SETTINGS.local, mode="eval"), rounds=3)
    participants = Participants(settings, DATA)
    server = Server(participants, 3)
    central = build_defended(participants.spec, (), settings.seed)
    optimiser = make_optimiser(central, recipe.local())
    for number in (1, 2, 3):
        sent = server.weights()
        server.apply([participants.client_round(client, number, 3, sent).update for client in range(4)], number)
        everyone = DATA.train.take(torch.cat([participants.places(client, number) for client in range(4)])).batch()
        large = Client(central, replace(settings.works, batch_size=24))
        update = large.update(copy_tensors(central.state_dict()), everyone, (), generator(0))
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(number - 1, 3)
        for name, parameter in central.named_parameters():
            parameter.grad = update.tensors[name]
        optimiser.step()
    for name, tensor in central.state_dict().items():
        torch.testing.assert_close(server.weights()[name], tensor, rtol=1e-4, atol=1e-5)


def test_one_client_with_all_images_trains_as_the_centralised_loop_does() -> None:
    recipe = replace(FAST, epochs=4, batch_size=96, threads=1, channels_last=False)
    settings = replace(
        SETTINGS, clients=1, batch_size=96, training=recipe, local=replace(SETTINGS.local, mode="train"), rounds=4
    )
    participants = Participants(settings, DATA)
    server = Server(participants, 4)
    for number in range(1, 5):
        sent = server.weights()
        server.apply([participants.client_round(0, number, 4, sent).update], number)
    model = build_defended(participants.spec, (), settings.seed)
    train(model, DATA, recipe, seed=settings.seed)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(server.weights()[name], tensor, rtol=1e-3, atol=1e-5)


def test_the_round_tells_the_attacker_what_the_server_knows() -> None:
    participants = Participants(replace(SETTINGS, arm="precode:width=4,gaussian:0.01"), DATA)
    weights = copy_tensors(participants.first_weights())
    update = participants.client_round(2, 5, 9, weights).update
    captured = participants.round_of(2, 5, weights, update)
    assert (captured.phase, captured.client, captured.participants) == ("round-5", 2, 1)
    assert [str(defence) for defence in captured.model_defences] == ["precode:width=4"]
    assert captured.known_defences == participants.arm.defences
    before = {name: tensor.clone() for name, tensor in captured.weights.items()}
    for tensor in weights.values():
        tensor.zero_()
    assert all(torch.equal(captured.weights[name], tensor) for name, tensor in before.items())
    captured.task(None, "cpu").model(torch.rand(1, 1, 12, 12))


def test_tests_cost_a_fifth_of_the_training_at_most() -> None:
    """40 test images forward cost as much as 13 in training; a round of fedsgd has 24, a round of fedavg 96."""
    assert Participants(SETTINGS, DATA).test_every == 3
    epoch = replace(FEDAVG, epochs=1, steps=None)
    assert Participants(replace(SETTINGS, algorithm="fedavg", local=epoch), DATA).test_every == 1
    assert Participants(replace(SETTINGS, batch_size=1), DATA).test_every == 17


def test_the_last_round_is_always_tested() -> None:
    participants = Participants(SETTINGS, DATA)
    assert [participants.is_tested(number, 7) for number in range(1, 8)] == [False, False, True] * 2 + [True]
