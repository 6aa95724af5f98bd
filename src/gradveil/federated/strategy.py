"""The strategy of our server: every reply is checked, and a bad one is dropped with a reason."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from torch import Tensor

from gradveil.capsule import name_capsule, write_capsule
from gradveil.federated.flower import (
    ArrayRecord,
    ConfigRecord,
    Grid,
    Message,
    MessageType,
    MetricRecord,
    Strategy,
)
from gradveil.federated.outcomes import Dropped, ReplyError, RoundOutcome, TooFewRepliesError
from gradveil.federated.participants import Participants
from gradveil.federated.server import Server
from gradveil.federated.wire import Expected, Reply, read_client, read_reply, to_arrays, write_instruction

logger = logging.getLogger(__name__)
REASON_LENGTH = 300


@dataclass(frozen=True)
class Capture:
    """The rounds whose releases the server writes to disk, and the folder of the capsules."""

    folder: Path
    rounds: tuple[int, ...]

    def write(self, participants: Participants, number: int, sent: Mapping[str, Tensor], reply: Reply) -> None:
        """Write the capsule of one reply if its round is one of those asked for."""
        if number in self.rounds:
            self.folder.mkdir(parents=True, exist_ok=True)
            captured = participants.round_of(reply.client, number, sent, reply.update)
            write_capsule(self.folder / name_capsule(number, reply.client), captured, number)


@dataclass(eq=False)
class ClientNumbers:
    """Which node is which client.

    A node says which client it is in its first reply, unless the engine knows already. It stays that client.
    """

    clients: int
    known: dict[int, int] = field(default_factory=dict)

    def check(self, node: int, client: int, claims: Mapping[int, int]) -> None:
        """Refuse the number of another client; `claims` counts how many nodes name each number in this round."""
        if not 0 <= client < self.clients:
            raise ReplyError(f"it says that it is client {client}: there are clients 0 to {self.clients - 1}")
        if self.known.get(node, client) != client:
            raise ReplyError(f"it says that it is client {client}")
        if node not in self.known and client in self.known.values():
            raise ReplyError(f"it says that it is client {client}, which is another node")
        if node not in self.known and claims[client] > 1:
            raise ReplyError(f"{claims[client]} nodes say that they are client {client}: none is believed")
        self.known[node] = client


@final
class CheckedStrategy(Strategy):
    """FedSGD or FedAvg as the settings say, with every reply checked.

    `on_round` is called after every round, also after one that stops the run. `done` rounds were finished before.
    """

    def __init__(
        self,
        participants: Participants,
        server: Server,
        *,
        done: int = 0,
        numbers: Mapping[int, int] | None = None,
        capture: Capture | None = None,
        on_round: Callable[[RoundOutcome], None] | None = None,
    ) -> None:
        self.participants, self.server, self.done = participants, server, done
        self.settings = participants.settings
        self.numbers = ClientNumbers(self.settings.clients, dict(numbers or {}))
        self.capture, self.on_round = capture, on_round
        self.sent: dict[str, Tensor] = {}
        self.nodes: list[int] = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send every client the weights in records of its own."""
        del config
        number = self.done + server_round
        self.sent = self.server.weights()
        self.nodes = sorted(grid.get_node_ids())
        return [
            Message(
                write_instruction(arrays, number, self.server.rounds), node, MessageType.TRAIN, group_id=str(number)
            )
            for node in self.nodes
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check the replies, combine the valid ones in the order of the clients, and take the step."""
        number = self.done + server_round
        valid, dropped = self.sort_out(list(replies), number)
        loss = sum(reply.loss for reply in valid) / len(valid) if valid else None
        outcome = RoundOutcome(number, len(valid), tuple(dropped), loss)
        if len(valid) < self.settings.needed:
            self.report(outcome)
            raise TooFewRepliesError(outcome, self.settings.clients, self.settings.needed)
        if self.capture is not None:
            for reply in valid:
                self.capture.write(self.participants, number, self.sent, reply)
        self.server.apply([reply.update for reply in valid], number)
        self.report(outcome)
        return to_arrays(self.server.weights()), None

    def report(self, outcome: RoundOutcome) -> None:
        for one in outcome.dropped:
            logger.warning("round %d: %s is dropped", outcome.round, one)
        if self.on_round is not None:
            self.on_round(outcome)

    def sort_out(self, replies: Sequence[Message], number: int) -> tuple[list[Reply], list[Dropped]]:
        """Return the valid replies in the order of the clients, and why the others were dropped."""
        settings = self.settings
        expected = Expected(self.server.trained(), self.server.buffers(), settings.largest_norm)
        claimed = [read_client(reply.content) for reply in replies if reply.has_content()]
        claims = Counter(client for client in claimed if client is not None)
        answered: set[int] = set()
        valid: list[Reply] = []
        dropped: list[Dropped] = []
        for message in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            node = message.metadata.src_node_id
            try:
                if node in answered:
                    raise ReplyError("it replied twice")
                answered.add(node)
                valid.append(self.read(message, number, expected, claims))
            except ReplyError as error:
                dropped.append(Dropped(self.name(message), shorten(str(error))))
        silent = [node for node in self.nodes if node not in answered]
        dropped += [Dropped(self.numbers.known.get(node), f"no reply within {settings.timeout:g} s") for node in silent]
        named = {reply.client for reply in valid} | {one.client for one in dropped}
        gone = [client for node, client in self.numbers.known.items() if node not in self.nodes and client not in named]
        dropped += [Dropped(client, "it is not connected any more") for client in dict.fromkeys(gone)]
        # A node that never answered has no number: those that are missing come last.
        dropped.sort(key=lambda one: (one.client is None, one.client))
        return sorted(valid, key=lambda reply: reply.client), dropped

    def read(self, message: Message, number: int, expected: Expected, claims: Mapping[int, int]) -> Reply:
        """Check one reply to round `number`."""
        if message.has_error():
            raise ReplyError(message.error.reason or f"an error with the code {message.error.code}")
        client = read_client(message.content)
        if client is None:
            raise ReplyError("it does not say which client it is from")
        self.numbers.check(message.metadata.src_node_id, client, claims)
        local = self.participants.local(number, self.server.rounds, client)
        reply = read_reply(message.content, expected, local)
        most = self.participants.count_images(reply.client)
        if reply.update.images > most:
            raise ReplyError(f"it is of {reply.update.images} images: a round of this client has {most}")
        return reply

    def name(self, message: Message) -> int | None:
        """Return the client of a reply's node, or the one that it says it is."""
        known = self.numbers.known.get(message.metadata.src_node_id)
        return read_client(message.content) if known is None and message.has_content() else known

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask no client to evaluate: the server has a test split."""
        del server_round, arrays, config, grid
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing: no client evaluates."""
        del server_round, replies
        return None

    def summary(self) -> None:
        """Log what the strategy does."""
        settings = self.settings
        logger.info("%s, %d clients, %d rounds", settings.algorithm, settings.clients, self.server.rounds)


def shorten(reason: str) -> str:
    """Keep one line of a reason: an error reply may hold a whole traceback."""
    line = " ".join(reason.split())
    return line if len(line) <= REASON_LENGTH else line[:REASON_LENGTH] + " …"
