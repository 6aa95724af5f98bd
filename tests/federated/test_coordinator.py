"""The server's side of a run: journal, tests, checkpoints, and going on after a kill to the bit."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from gradveil.errors import SettingsError
from gradveil.federated import Participants, RoundOutcome
from gradveil.federated.coordinator import Coordinator, OnRound, Recording
from gradveil.federated.flower import ClientApp, Context, Message
from gradveil.federated.in_process import run_in_process
from gradveil.federated.outcomes import TooFewRepliesError
from gradveil.training import load_checkpoint
from tests.federated.scenes import QUICK, make_participants, same, small_data


class StoppedError(Exception):
    """Stands for a kill: nothing of ours handles it."""


def stop_after(number: int) -> OnRound:
    def stop(outcome: RoundOutcome, _: int) -> None:
        if outcome.round == number:
            raise StoppedError

    return stop


@pytest.mark.parametrize("algorithm", ["fedsgd", "fedavg"])
def test_a_resumed_run_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """The state is saved after round 2 of 5 and the run ends in round 4, so that two rounds take place again."""
    monkeypatch.setattr("gradveil.federated.coordinator.SAVE_SECONDS", 0.0)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    participants = make_participants(rounds=5, algorithm=algorithm, arm="crop-flip")
    for folder in (whole, cut):
        folder.mkdir()
    run_in_process(Coordinator(participants, whole, Recording()), 1)
    first = Coordinator(participants, cut, Recording(), on_round=stop_after(4))
    original = first.end_round

    def end_round(outcome: RoundOutcome) -> None:
        if outcome.round == 3:
            monkeypatch.setattr("gradveil.federated.coordinator.SAVE_SECONDS", 1e6)
        original(outcome)

    monkeypatch.setattr(first, "end_round", end_round)
    with pytest.raises(StoppedError):
        run_in_process(first, 1)
    assert len(first.journal.read()) == 4
    second = Coordinator(participants, cut, Recording(), resume=True)
    assert second.done == 2
    assert len(second.journal.read()) == 2
    run_in_process(second, 1)
    assert second.journal.read() == Coordinator(participants, whole, Recording(), resume=True).journal.read()
    ended = [load_checkpoint(folder / "final.safetensors").weights for folder in (whole, cut)]
    assert same(*ended)


def sleeping_app() -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message: Message, _: Context) -> Message:
        time.sleep(30)
        return message

    return app


def test_a_stopped_round_takes_place_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody replies in time, which stops the run; later it goes on from the round before."""
    stopped = Coordinator(make_participants(timeout=0.05), tmp_path, Recording())
    monkeypatch.setattr(stopped, "make_app", lambda _: sleeping_app)
    with pytest.raises(TooFewRepliesError):
        run_in_process(stopped, 1)
    assert [(line["round"], line["valid"]) for line in stopped.journal.read()] == [(1, 0)]
    patient = Participants(replace(QUICK, timeout=60.0), small_data())
    again = Coordinator(patient, tmp_path, Recording(), resume=True)
    run_in_process(again, 1)
    assert [line["valid"] for line in again.journal.read()] == [4, 4, 4]


def test_checkpoints_can_be_loaded(tmp_path: Path) -> None:
    coordinator = Coordinator(make_participants(), tmp_path, Recording(checkpoints=(2,)))
    run_in_process(coordinator, 1)
    second, final = (load_checkpoint(tmp_path / f"{name}.safetensors") for name in ("round-2", "final"))
    assert not same(second.weights, final.weights)
    assert same(final.weights, coordinator.server.weights())
    assert (second.made["phase"], str(second.loss)) == ("round-2", QUICK.training.loss)


@pytest.mark.parametrize(
    ("recording", "reason"),
    [
        (Recording(capture=(4,)), "choose from 1 to 3"),
        (Recording(checkpoints=(0,)), "choose from 1 to 3"),
        (Recording(keep_truth=True), "--capture"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, recording: Recording, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Coordinator(make_participants(), tmp_path, recording)
