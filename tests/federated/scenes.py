"""Small runs for the tests of this room, and clients that misbehave."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from gradveil import data
from gradveil.data import DataSet
from gradveil.federated import FederatedSettings, ParticipantApp, Participants, RoundOutcome
from gradveil.federated.flower import Array, ClientApp, Context, Message, MetricRecord, silenced
from gradveil.federated.in_process import InProcessGrid
from gradveil.federated.server import Server
from gradveil.federated.strategy import CheckedStrategy
from gradveil.federated.wire import to_arrays
from gradveil.training import PAPER
from gradveil.workers import Workers

TRAINING = replace(PAPER, learning_rate=0.05, warm_up=0.0, threads=1)
QUICK = FederatedSettings(
    model="lenet", clients=4, rounds=3, batch_size=5, arm="none", training=TRAINING, timeout=60.0, seed=3
)


@cache
def small_data() -> DataSet:
    """160 training and 40 test images of the sample."""
    sample = data.load("fashion-mnist-sample")
    first = torch.arange(160)
    return replace(sample, train=sample.train.take(first), test=sample.test.take(first[:40]))


def make_participants(**changes: Any) -> Participants:
    return Participants(replace(QUICK, **changes), small_data())


Fault = Callable[[Message], Message]


@dataclass(frozen=True, eq=False)
class Misbehaving:
    """An app of which one client does something else to its reply, or instead of replying."""

    app: ParticipantApp
    client: int
    fault: Fault

    def __call__(self) -> ClientApp:
        inner, app = self.app(), ClientApp()

        @app.train()
        def train(message: Message, context: Context) -> Message:
            if context.node_config["partition-id"] != self.client:
                return inner(message, context)
            return self.fault(inner(message, context))

        return app


def fail(_: Message) -> Message:
    raise ValueError("the disk of the client is full")


def kill_process(_: Message) -> Message:
    os._exit(1)


def oversleep(reply: Message) -> Message:
    time.sleep(30)
    return reply


def first_name(reply: Message) -> str:
    return next(iter(reply.content.array_records["update"]))


def put(reply: Message, values: np.ndarray[Any, Any]) -> Message:
    reply.content.array_records["update"][first_name(reply)] = Array(values)
    return reply


def values_of(reply: Message) -> np.ndarray[Any, Any]:
    return reply.content.array_records["update"][first_name(reply)].numpy()


def send_nan(reply: Message) -> Message:
    return put(reply, np.full_like(values_of(reply), np.nan))


def send_huge(reply: Message) -> Message:
    return put(reply, np.full_like(values_of(reply), 1e30))


def send_one_number(reply: Message) -> Message:
    return put(reply, np.ones(1, np.float32))


def send_other_type(reply: Message) -> Message:
    return put(reply, values_of(reply).astype(np.float64))


def send_other_name(reply: Message) -> Message:
    arrays = reply.content.array_records["update"]
    arrays["another"] = arrays.pop(first_name(reply))
    return reply


def send_lie(reply: Message) -> Message:
    """Declare the right shape and send other bytes."""
    arrays, name = reply.content.array_records["update"], first_name(reply)
    right = arrays[name]
    arrays[name] = Array(right.dtype, right.shape, right.stype, Array(np.ones(1, np.float32)).data)
    return reply


def claim(reply: Message, **figures: float) -> Message:
    reply.content["figures"] = MetricRecord({**dict(reply.content.metric_records["figures"]), **figures})
    return reply


def claim_other_number(reply: Message) -> Message:
    return claim(reply, client=0)


def claim_no_such_number(reply: Message) -> Message:
    return claim(reply, client=99)


def claim_many_images(reply: Message) -> Message:
    return claim(reply, images=10**6)


def claim_no_images(reply: Message) -> Message:
    return claim(reply, images=0)


def claim_nan_loss(reply: Message) -> Message:
    return claim(reply, loss=float("nan"))


def send_nothing(reply: Message) -> Message:
    reply.content.clear()
    return reply


@dataclass(eq=False)
class Trial:
    """A few rounds in this process; `run` returns what came of each."""

    participants: Participants
    outcomes: list[RoundOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = Server(self.participants, self.participants.settings.count_rounds(self.participants.data))

    def run(
        self, client: int = -1, fault: Fault = fail, workers: int = 1, numbers: bool = True
    ) -> dict[str, torch.Tensor]:
        """Run all rounds; `client` has the fault. Without `numbers` the strategy must learn who is who."""
        settings = self.participants.settings
        with silenced(), Workers(workers) as crew:
            app = Misbehaving(ParticipantApp(crew.share(self.participants)), client, fault)
            grid = InProcessGrid(app, settings.clients, crew)
            known = grid.numbers if numbers else None
            strategy = CheckedStrategy(self.participants, self.server, numbers=known, on_round=self.outcomes.append)
            strategy.start(
                grid, to_arrays(self.server.weights()), num_rounds=self.server.rounds, timeout=settings.timeout
            )
        return self.server.weights()


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
