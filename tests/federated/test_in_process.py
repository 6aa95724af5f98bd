"""The grid of this process: apps and strategies as they are, any number of workers, clients that fail."""

import time
from dataclasses import dataclass

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg

from gradveil.federated.flower import (
    Array,
    ArrayRecord,
    ClientApp,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
    silenced,
)
from gradveil.federated.in_process import InProcessGrid, OutOfTimeError, time_limit
from gradveil.workers import Workers
from tests.federated import scenes
from tests.federated.scenes import Trial, make_participants, same


@dataclass(frozen=True)
class PlainApp:
    """An app as in Flower's tutorials: it adds its number to the weights and counts its rounds."""

    def __call__(self) -> ClientApp:
        app = ClientApp()

        @app.train()
        def train(message: Message, context: Context) -> Message:
            number = context.node_config["partition-id"]
            assert isinstance(number, int)
            arrays = message.content.array_records["arrays"]
            # In its own records: the other clients must not see it.
            arrays["weight"] = Array(arrays["weight"].numpy() + number)
            seen = context.state.metric_records["seen"]["rounds"] if "seen" in context.state else 0
            assert isinstance(seen, int)
            rounds = seen + 1
            context.state["seen"] = MetricRecord({"rounds": rounds})
            figures = MetricRecord({"num-examples": 1, "rounds": rounds})
            return Message(RecordDict({"arrays": arrays, "metrics": figures}), reply_to=message)

        return app


@pytest.mark.parametrize("workers", [1, 2])
def test_flowers_own_strategy_and_a_plain_app_run_unchanged(workers: int) -> None:
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=3, min_available_nodes=3)
    with silenced(), Workers(workers) as crew:
        grid = InProcessGrid(PlainApp(), 3, crew)
        result = strategy.start(grid, ArrayRecord({"weight": Array(np.zeros(2))}), num_rounds=2)
    # The mean of 0, 1 and 2 is added twice.
    assert result.arrays["weight"].numpy().tolist() == pytest.approx([2.0, 2.0])
    assert result.train_metrics_clientapp[2]["rounds"] == 2


def test_the_weights_do_not_depend_on_the_workers() -> None:
    alone = Trial(make_participants(arm="crop-flip", algorithm="fedavg")).run()
    assert same(alone, Trial(make_participants(arm="crop-flip", algorithm="fedavg")).run(workers=2))
    assert not same(alone, Trial(make_participants(arm="crop-flip", algorithm="fedavg", seed=4)).run())


def test_a_client_that_kills_its_process_is_dropped() -> None:
    trial = Trial(make_participants(rounds=1))
    weights = trial.run(2, scenes.kill_process, workers=2)
    assert [(one.client, "worker processes died" in one.reason) for one in trial.outcomes[0].dropped] == [(2, True)]
    assert same(weights, Trial(make_participants(rounds=1)).run(2, scenes.fail))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sleeping_client_is_left_out_in_time(workers: int) -> None:
    trial = Trial(make_participants(rounds=1, timeout=3.0))
    started = time.monotonic()
    trial.run(1, scenes.oversleep, workers=workers)
    assert time.monotonic() - started < 20
    assert (trial.outcomes[0].valid, trial.outcomes[0].dropped[0].client) == (3, 1)


def test_time_is_up_even_for_who_catches_everything() -> None:
    def catch_everything() -> None:
        while True:
            try:
                time.sleep(1)
            except Exception:
                continue

    with pytest.raises(OutOfTimeError), time_limit(0.05):
        catch_everything()
    with time_limit(0.05):
        pass
    time.sleep(0.1)


def test_time_is_up_even_if_the_first_alarm_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first alarm comes inside a destructor, where Python drops whatever is raised."""
    monkeypatch.setattr("gradveil.federated.in_process.REPEAT_SECONDS", 0.05)
    dropped: list[type[BaseException]] = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: dropped.append(what.exc_type))

    class Slow:
        def __del__(self) -> None:
            time.sleep(10)

    def work() -> None:
        Slow()
        time.sleep(10)

    started = time.monotonic()
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        work()
    assert dropped == [OutOfTimeError]
    assert time.monotonic() - started < 10


def test_messages_can_be_pushed_and_pulled_apart() -> None:
    with Workers(1) as crew:
        grid = InProcessGrid(PlainApp(), 2, crew)
        content = RecordDict({"arrays": ArrayRecord({"weight": Array(np.zeros(1))})})
        messages = [grid.create_message(content, MessageType.TRAIN, node, "1") for node in grid.get_node_ids()]
        numbers = list(grid.push_messages(messages))
        replies = list(grid.pull_messages(numbers))
        assert [reply.metadata.reply_to_message_id for reply in replies] == numbers
        assert list(grid.pull_messages(numbers)) == []
    assert dict(grid.numbers) == {1: 0, 2: 1}
    grid.set_run(grid.run)
