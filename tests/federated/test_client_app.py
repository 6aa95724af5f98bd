"""A participant's app: it answers for its own share, and the truth stays with it."""

from pathlib import Path

import pytest
import torch

from gradveil.capsule import CapsulePaths, name_capsule, read_truth
from gradveil.errors import SettingsError
from gradveil.federated import ParticipantApp
from gradveil.federated.client_app import TruthKeeper, read_partition
from gradveil.federated.flower import Context, Message, MessageType, RecordDict
from gradveil.federated.flower_internals import make_run
from gradveil.federated.wire import Expected, read_reply, to_arrays, write_instruction
from gradveil.types import to_pixels
from gradveil.workers import Workers
from tests.federated.scenes import make_participants, same, small_data


def make_context(partition: int | str) -> Context:
    return Context(1, 7, {"partition-id": partition}, RecordDict(), {})


def test_the_reply_is_what_the_participant_releases(tmp_path: Path) -> None:
    make_run()
    participants = make_participants(arm="crop-flip")
    weights = participants.first_weights()
    app = ParticipantApp(Workers(1).share(participants), TruthKeeper(tmp_path, (2,)))()
    for number in (1, 2):
        content = write_instruction(to_arrays(weights), number, 3)
        reply = app(Message(content, 7, MessageType.TRAIN), make_context(1))
    released = participants.client_round(1, 2, 3, weights)
    trained = {name: weights[name] for name in released.update.tensors}
    buffers = {name: weights[name] for name in weights.keys() - trained.keys()}
    read = read_reply(reply.content, Expected(trained, buffers, 1e4), released.update.local)
    assert same(dict(read.update.tensors), dict(released.update.tensors))
    assert (read.client, read.update.images, read.loss) == (1, 5, released.loss)
    kept = [path.name for path in tmp_path.iterdir()]
    assert kept == [CapsulePaths.of(Path(name_capsule(2, 1))).truth.name]
    truths = read_truth(tmp_path / name_capsule(2, 1))
    assert {truth.image for truth in truths} <= set(participants.shares[1].tolist())
    for truth in truths:
        assert torch.equal(truth.original, to_pixels(small_data().train.images[truth.image : truth.image + 1]))


def test_nothing_of_the_truth_is_in_the_reply() -> None:
    make_run()
    participants = make_participants()
    app = ParticipantApp(Workers(1).share(participants))()
    content = write_instruction(to_arrays(participants.first_weights()), 1, 3)
    reply = app(Message(content, 7, MessageType.TRAIN), make_context(0)).content
    assert set(reply) == {"update", "buffers", "figures"}
    assert set(reply.metric_records["figures"]) == {"client", "images", "loss"}
    assert set(reply.array_records["update"]) == set(dict(participants.model.named_parameters()))


@pytest.mark.parametrize("partition", [4, -1, "0"])
def test_a_node_must_say_which_participant_it_is(partition: int | str) -> None:
    with pytest.raises(SettingsError, match="from 0 to 3"):
        read_partition(make_context(partition), 4)
