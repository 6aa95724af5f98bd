"""Capture rounds of somebody's Flower app into capsules: as a client mod, or around the server's strategy."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from torch import Tensor

from gradveil.capsule import name_capsule, write_capsule, write_truth
from gradveil.defences import Defence, parse_defences
from gradveil.errors import GradveilError
from gradveil.federated.app_model import AppModel, find_round_number, is_training
from gradveil.federated.flower import ArrayRecord, ConfigRecord, Context, Grid, Message, MetricRecord, Strategy
from gradveil.federated.memory import RoundMemory, remembering
from gradveil.federated.mods import CallNext

log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, eq=False)
class AppCapture:
    """Which rounds are captured, and where their capsules go; `rounds` None captures every round."""

    app: AppModel
    folder: Path
    rounds: Collection[int] | None = None

    def wants(self, number: int) -> bool:
        return self.rounds is None or number in self.rounds

    def write(
        self, sent: dict[str, Tensor], reply: Message, number: int, client: int, known: tuple[Defence, ...]
    ) -> Path:
        """Write the attacker's part of one client's round."""
        path = self.folder / name_capsule(number, client)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_capsule(path, self.app.read_round(sent, reply, number, client, known), number)
        return path


@final
class CaptureMod:
    """Write what leaves this client in chosen rounds into capsules; put it first in the list of mods.

    With `keep_truth` the images that the app handed over with `remember` are written too, for the client's own audit.
    A capture that fails is logged; the reply leaves as it is.
    """

    def __init__(
        self, app: AppModel, folder: Path | str, rounds: Collection[int] | None = None, *, keep_truth: bool = False
    ) -> None:
        self.capture, self.keep_truth = AppCapture(app, Path(folder), rounds), keep_truth

    def __call__(self, message: Message, context: Context, call_next: CallNext) -> Message:
        """Let the app work, and capture its reply."""
        with remembering() as memory:
            reply = call_next(message, context)
            if is_training(message) and reply.has_content():
                try:
                    self.write(message, reply, context, memory)
                except (GradveilError, OSError) as error:
                    log.warning("this round was not captured: %s", error)
        return reply

    def write(self, message: Message, reply: Message, context: Context, memory: RoundMemory) -> None:
        number = find_round_number(message)
        if not self.capture.wants(number):
            return
        app = self.capture.app
        partition = context.node_config.get("partition-id")
        client = partition if isinstance(partition, int) else context.node_id
        known = (*app.defences, *memory.defences)
        path = self.capture.write(app.read_sent(message), reply, number, client, known)
        if self.keep_truth:
            images = app.read_update(app.read_sent(message), reply).images
            made: dict[str, Any] = {"data": "a Flower app", "arm": ",".join(map(str, known)) or "none"}
            write_truth(path, memory.truths(app, images), made)


@final
class CapturingStrategy(Strategy):
    """A strategy that writes the replies of chosen rounds into capsules before it hands them on.

    `known_defences` names what the server knows of the clients' defences, with commas between. Clients are named by
    their node's number. A reply that cannot be captured is logged and handed on.
    """

    def __init__(
        self,
        strategy: Strategy,
        app: AppModel,
        folder: Path | str,
        rounds: Collection[int] | None = None,
        known_defences: str = "none",
    ) -> None:
        self.strategy = strategy
        self.capture = AppCapture(app, Path(folder), rounds)
        parsed = () if known_defences == "none" else parse_defences(known_defences.split(","))
        self.known = (*app.defences, *parsed)
        self.sent: dict[int, Message] = {}

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Note what every client is sent."""
        messages = list(self.strategy.configure_train(server_round, arrays, config, grid))
        self.sent = {message.metadata.dst_node_id: message for message in messages}
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Capture every reply that has content."""
        received = list(replies)
        if self.capture.wants(server_round):
            for reply in received:
                self.write(server_round, reply)
        return self.strategy.aggregate_train(server_round, received)

    def write(self, number: int, reply: Message) -> None:
        client = reply.metadata.src_node_id
        if not reply.has_content() or client not in self.sent:
            return
        try:
            sent = self.capture.app.read_sent(self.sent[client])
            self.capture.write(sent, reply, number, client, self.known)
        except (GradveilError, OSError) as error:
            log.warning("the reply of node %s in round %s was not captured: %s", client, number, error)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Leave the evaluation to the strategy."""
        return self.strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Leave the evaluation to the strategy."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log the settings of the strategy."""
        self.strategy.summary()
