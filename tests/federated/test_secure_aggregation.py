"""Secure aggregation: the mean comes out, no single update does, and a captured mean can be attacked as such."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gradveil.capsule import name_capsule, read_capsule, read_truth
from gradveil.client import Simulation
from gradveil.errors import SettingsError
from gradveil.federated.coordinator import Coordinator, Recording
from gradveil.federated.flower import Message, silenced
from gradveil.federated.in_process import InProcessGrid
from gradveil.federated.outcomes import TooFewRepliesError
from gradveil.federated.participants import Participants
from gradveil.federated.run import read_result
from gradveil.federated.secure_aggregation import (
    LARGEST_VALUE,
    MaskedApp,
    SecureAggregation,
    choose_bits,
    run_secure,
    to_update,
    to_values,
)
from gradveil.federated.server import weighted_mean
from gradveil.federated.settings import FederatedSettings
from gradveil.types import LocalTraining, Update
from gradveil.workers import Workers
from tests.federated.small_data import make_data

DATA = make_data()
FEDSGD = FederatedSettings(data="small", model="convnet-2", clients=4, arm="none", batch_size=2, rounds=2)
FEDAVG = replace(
    FEDSGD, algorithm="fedavg", partition="dirichlet:0.5", local=LocalTraining(epochs=1, batch_size=8, mode="train")
)


class Listening:
    """Keep every reply that reaches the server."""

    def __init__(self, grid: InProcessGrid) -> None:
        self.heard: list[Message] = []
        self.send = grid.send_and_receive
        grid.send_and_receive = self  # type: ignore[method-assign]

    def __call__(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies = list(self.send(messages, timeout=timeout))
        self.heard += replies
        return replies


@contextmanager
def aggregating(
    settings: FederatedSettings, largest: float = LARGEST_VALUE
) -> Iterator[tuple[SecureAggregation, Listening]]:
    participants = Participants(settings, DATA)
    with silenced(), Workers(1) as crew:
        grid = InProcessGrid(MaskedApp(crew.share(participants), largest), settings.clients, crew)
        yield SecureAggregation(participants, grid, grid.numbers, 2, largest), Listening(grid)


def release_all(settings: FederatedSettings) -> list[Update]:
    participants = Participants(settings, DATA)
    sent = participants.first_weights()
    return [participants.client_round(client, 1, 2, sent).update for client in range(settings.clients)]


def mean_of(updates: list[Update]) -> Update:
    shares = [update.images for update in updates]
    tensors = {name: weighted_mean([one.tensors[name] for one in updates], shares) for name in updates[0].tensors}
    buffers = {
        name: weighted_mean([(one.buffers or {})[name] for one in updates], shares) for name in updates[0].buffers or {}
    }
    return replace(updates[0], tensors=tensors, images=sum(shares), buffers=buffers)


@pytest.mark.parametrize("settings", [FEDSGD, FEDAVG], ids=["fedsgd", "fedavg"])
def test_the_mean_is_the_plain_one_to_the_rounding(settings: FederatedSettings) -> None:
    with aggregating(settings) as (aggregation, _):
        mean = aggregation.collect(aggregation.participants.first_weights(), 1)
    updates = release_all(settings)
    plain = mean_of(updates)
    assert mean.update is not None
    assert mean.images == {client: update.images for client, update in enumerate(updates)}
    assert mean.update.images == plain.images
    assert mean.dropped == ()
    # Each client rounds at random to one of the two nearest steps; then all is divided by the sum of the weights.
    step = 2 * LARGEST_VALUE / 2 ** choose_bits(settings.clients)
    weight = sum(update.images for update in updates) / max(update.images for update in updates)
    allowed = 1.01 * step * settings.clients / weight + 1e-7
    for name, tensor in plain.tensors.items():
        assert mean.update.tensors[name].dtype == tensor.dtype
        assert float((mean.update.tensors[name] - tensor).abs().max()) <= allowed
    assert plain.buffers is not None
    assert mean.update.buffers is not None
    for name, buffer in plain.buffers.items():
        assert mean.update.buffers[name].dtype == buffer.dtype
        torch.testing.assert_close(mean.update.buffers[name], buffer, rtol=1e-6, atol=2 * allowed)


def test_the_server_sees_no_single_update() -> None:
    with aggregating(FEDSGD) as (aggregation, listening):
        aggregation.collect(aggregation.participants.first_weights(), 1)
    masked = 0
    updates = release_all(FEDSGD)
    for message in listening.heard:
        client = aggregation.numbers[message.metadata.src_node_id]
        assert all(len(record) == 0 for record in message.content.array_records.values())
        numbers = {key: value for record in message.content.metric_records.values() for key, value in record.items()}
        assert set(numbers) <= {"num_examples"}
        for record in message.content.config_records.values():
            vectors = record.get("masked_params")
            if isinstance(vectors, list):
                masked += 1
                check_masked([np.load(io.BytesIO(one)) for one in vectors if isinstance(one, bytes)], updates[client])
    assert masked == FEDSGD.clients


def check_masked(vectors: list[NDArray[np.int64]], update: Update) -> None:
    """A masked vector is spread over the whole range and does not go along with the update."""
    seen = np.concatenate([vector.reshape(-1) for vector in vectors[1 : 1 + len(update.tensors)]]).astype(np.float64)
    true = torch.cat([tensor.flatten() for tensor in update.tensors.values()]).double().numpy()
    assert len(seen) == len(true) > 1000
    assert abs(np.corrcoef(seen, true)[0, 1]) < 5 / np.sqrt(len(true))
    shares, _ = np.histogram(seen, bins=8, range=(0, 2**32))
    assert shares.min() > 0.8 * len(seen) / 8
    assert shares.max() < 1.2 * len(seen) / 8


def test_a_client_whose_update_does_not_fit_sends_nothing_and_the_others_go_on() -> None:
    settings = replace(FEDSGD, local=replace(FEDSGD.local, mode="eval"))
    updates = release_all(settings)
    peaks = [max(float(tensor.abs().max()) for tensor in update.tensors.values()) for update in updates]
    loudest = peaks.index(max(peaks))
    with aggregating(settings, 0.999 * max(peaks)) as (aggregation, _):
        mean = aggregation.collect(aggregation.participants.first_weights(), 1)
    assert [one.client for one in mean.dropped] == [loudest]
    assert "secure aggregation takes at most" in mean.dropped[0].reason
    plain = mean_of([update for client, update in enumerate(updates) if client != loudest])
    assert mean.update is not None
    for name, tensor in plain.tensors.items():
        torch.testing.assert_close(mean.update.tensors[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 17.0, -17.0])
def test_what_would_be_cut_or_is_not_finite_is_refused(value: float) -> None:
    update = Update({"w": torch.tensor([0.5, value])}, 1)
    with pytest.raises(SettingsError, match="at most 16"):
        to_values(update, {"w": torch.zeros(2)}, 16.0)


def test_an_update_comes_back_from_its_values() -> None:
    sent = {"w": torch.zeros(2), "mean": torch.tensor([100.0]), "count": torch.tensor(50)}
    update = Update(
        {"w": torch.tensor([0.5, -2.0])}, 3, buffers={"mean": torch.tensor([101.5]), "count": torch.tensor(51)}
    )
    back = to_update(to_values(update, sent, 16.0), 3, sent, update)
    assert back.buffers is not None
    assert torch.equal(back.tensors["w"], update.tensors["w"])
    assert float(back.buffers["mean"]) == 101.5
    assert back.buffers["count"].dtype == torch.int64
    assert int(back.buffers["count"]) == 51


@pytest.mark.parametrize("clients", [2, 3, 4, 7, 8, 10, 100, 1000])
def test_the_sum_of_all_clients_cannot_overflow(clients: int) -> None:
    assert clients * 2 ** choose_bits(clients) < 2**32
    assert 2 ** choose_bits(clients) < 2**31


def run(folder: Path, settings: FederatedSettings = FEDSGD, workers: int = 1, largest: float = LARGEST_VALUE) -> None:
    recording = Recording((2,), keep_truth=True)
    run_secure(Coordinator(Participants(settings, DATA), folder, recording), workers, largest)


def test_the_capsule_holds_the_mean_only_and_the_attackers_twin_reproduces_it(tmp_path: Path) -> None:
    run(tmp_path)
    stem = Path(name_capsule(2, 0)).stem
    assert sorted(path.name for path in (tmp_path / "capsules").iterdir()) == [
        f"{stem}.{kind}" for kind in ("json", "safetensors", "truth.safetensors")
    ]
    captured, truths = read_capsule(tmp_path / "capsules" / f"{stem}.json"), read_truth(tmp_path / "capsules" / stem)
    assert (captured.participants, captured.update.images, len(truths)) == (4, 8, 8)
    assert captured.update.labels is None
    task = captured.task(None, "cpu")
    simulation = Simulation(task.model, task.loss, captured.update.local, task.shape, task.participants)
    images = torch.cat([truth.transformed for truth in truths])
    labels = torch.tensor([truth.fed_label for truth in truths])
    again = simulation(images[None], labels[None])
    for name, tensor in captured.update.tensors.items():
        torch.testing.assert_close(again[name][0].detach(), tensor, rtol=1e-3, atol=1e-5)


def test_the_same_seed_gives_the_same_weights_with_any_number_of_workers(tmp_path: Path) -> None:
    state = np.random.get_state(legacy=False)
    folders = [tmp_path / "one", tmp_path / "two"]
    for workers, folder in enumerate(folders, 1):
        folder.mkdir()
        run(folder, workers=workers)
    first, second = (read_result(folder) for folder in folders)
    assert all(torch.equal(second.weights[name], tensor) for name, tensor in first.weights.items())
    assert first.rounds == second.rounds
    assert [(outcome.valid, outcome.dropped) for outcome in first.rounds] == [(4, ()), (4, ())]
    assert str(np.random.get_state(legacy=False)) == str(state), "numpy's global state is left alone"


def test_too_few_updates_stop_the_run_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TooFewRepliesError, match="round 1 stopped: 0 of 4 replies are valid") as stop:
        run(tmp_path, largest=1e-6)
    assert "\n" not in str(stop.value)


def test_one_client_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="2 or more"):
        run(tmp_path, replace(FEDSGD, clients=1))


def test_flowers_masks_still_have_seeds_of_32_bits() -> None:
    """docs/decentralised.md warns of it; when this fails, Flower has mended it, and the warning can go."""
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

    one, other = bytes(range(32)), bytes(range(4, 8)) + bytes(range(4)) + bytes(range(8, 32))
    shape: list[tuple[int, ...]] = [(5,)]
    assert np.array_equal(pseudo_rand_gen(one, 2**32, shape)[0], pseudo_rand_gen(other, 2**32, shape)[0])
