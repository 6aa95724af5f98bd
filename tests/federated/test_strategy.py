"""Every fault of a client: the round goes on without it, and the outcome says why."""

import re
from pathlib import Path

import pytest
import torch

from gradveil.capsule import name_capsule, read_capsule
from gradveil.federated.client_app import ParticipantApp
from gradveil.federated.flower import silenced
from gradveil.federated.in_process import InProcessGrid
from gradveil.federated.outcomes import Dropped, RoundOutcome, TooFewRepliesError
from gradveil.federated.strategy import Capture, CheckedStrategy
from gradveil.federated.wire import Reply, to_arrays
from gradveil.workers import Workers
from tests.federated import scenes
from tests.federated.scenes import Fault, Trial, make_participants, same

FAULTS: dict[str, tuple[Fault, str]] = {
    "raises": (scenes.fail, "the disk of the client is full"),
    "NaN": (scenes.send_nan, "NaN or infinity"),
    "1e30": (scenes.send_huge, "above 10000"),
    "one number": (scenes.send_one_number, r"float32\[1\]"),
    "another type": (scenes.send_other_type, "float64"),
    "another name": (scenes.send_other_name, "names another"),
    "other bytes": (scenes.send_lie, "holds float32"),
    "another's number": (scenes.claim_other_number, "client 0"),
    "a number that is not there": (scenes.claim_no_such_number, "clients 0 to 3"),
    "too many images": (scenes.claim_many_images, "a round of this client has 5"),
    "no images": (scenes.claim_no_images, "of 0 images"),
    "a loss of NaN": (scenes.claim_nan_loss, "loss is nan"),
    "nothing": (scenes.send_nothing, "which client"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_reply_is_dropped_and_the_round_goes_on(name: str) -> None:
    fault, reason = FAULTS[name]
    trial = Trial(make_participants())
    weights = trial.run(2, fault)
    assert [(outcome.round, outcome.valid) for outcome in trial.outcomes] == [(1, 3), (2, 3), (3, 3)]
    for outcome in trial.outcomes:
        assert [one.client for one in outcome.dropped] == [2]
        assert re.search(reason, outcome.dropped[0].reason)
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_dropped_replies_leave_no_trace() -> None:
    """Whatever a client sends that is dropped, the weights are those without it."""
    ended = [Trial(make_participants()).run(2, fault) for fault in (scenes.fail, scenes.send_nan, scenes.send_huge)]
    assert same(ended[0], ended[1])
    assert same(ended[0], ended[2])
    assert not same(ended[0], Trial(make_participants()).run())


def test_too_few_valid_replies_stop_the_run() -> None:
    trial = Trial(make_participants(least_valid=4))
    before = trial.server.weights()
    with pytest.raises(TooFewRepliesError, match=r"round 1 stopped: 3 of 4 .* 4 are needed \(client 2: .*--resume"):
        trial.run(2, scenes.send_nan)
    assert [outcome.valid for outcome in trial.outcomes] == [3]
    assert same(trial.server.weights(), before)


def test_without_known_numbers_nobody_who_claims_a_number_twice_is_believed() -> None:
    trial = Trial(make_participants(rounds=1, least_valid=2))
    trial.run(2, scenes.claim_other_number, numbers=False)
    assert trial.outcomes[0].valid == 2
    assert [str(one) for one in trial.outcomes[0].dropped] == [
        "client 0: 2 nodes say that they are client 0: none is believed"
    ] * 2


def test_numbers_are_learnt_and_give_the_same_weights() -> None:
    assert same(Trial(make_participants()).run(numbers=False), Trial(make_participants()).run())


def test_a_sleeping_client_is_named() -> None:
    trial = Trial(make_participants(rounds=1, timeout=3.0))
    trial.run(1, scenes.oversleep)
    assert trial.outcomes[0].dropped == (Dropped(1, "no reply within 3 s"),)


def test_a_client_whose_node_is_gone_is_named_in_every_round_that_lacks_it() -> None:
    trial = Trial(make_participants())
    with silenced(), Workers(1) as crew:
        grid = InProcessGrid(ParticipantApp(crew.share(trial.participants)), trial.participants.settings.clients, crew)

        def lose_client(outcome: RoundOutcome) -> None:
            trial.outcomes.append(outcome)
            grid.contexts.pop(2, None)

        strategy = CheckedStrategy(trial.participants, trial.server, on_round=lose_client)
        strategy.start(grid, to_arrays(trial.server.weights()), num_rounds=3, timeout=60)
    gone = (Dropped(1, "it is not connected any more"),)
    assert [(one.valid, one.dropped) for one in trial.outcomes] == [(4, ()), (3, gone), (3, gone)]


def test_captured_rounds_can_be_read_back(tmp_path: Path) -> None:
    participants = make_participants()
    sent = participants.first_weights()
    released = participants.client_round(1, 2, 3, sent)
    capture = Capture(tmp_path / "capsules", (2,))
    for number in (1, 2):
        capture.write(participants, number, sent, Reply(1, released.update, released.loss))
    assert not (capture.folder / name_capsule(1, 1)).exists()
    captured = read_capsule(capture.folder / name_capsule(2, 1))
    assert (captured.client, captured.phase, captured.update.images) == (1, "round-2", 5)
    assert same(dict(captured.weights), dict(sent))
    assert same(dict(captured.update.tensors), dict(released.update.tensors))


def test_no_client_is_asked_to_evaluate() -> None:
    trial = Trial(make_participants())
    strategy = CheckedStrategy(trial.participants, trial.server)
    arrays = to_arrays(trial.server.weights())
    with silenced():
        assert list(strategy.configure_evaluate(1, arrays, None, None)) == []  # type: ignore[arg-type]
    assert strategy.aggregate_evaluate(1, []) is None
