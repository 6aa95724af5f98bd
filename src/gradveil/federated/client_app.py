"""The Flower app of a participant: a thin shell around `Participants.client_round`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradveil.capsule import name_capsule, write_truth
from gradveil.errors import OutputError, SettingsError
from gradveil.federated.flower import ClientApp, Context, Message
from gradveil.federated.participants import ClientWork, Participants
from gradveil.federated.wire import read_instruction, write_reply
from gradveil.machine import threads
from gradveil.workers import Shared

AppFactory = Callable[[], ClientApp]
"""Makes a client's app; it can be pickled, which an app cannot."""


@dataclass(frozen=True, eq=False)
class TruthKeeper:
    """Where and in which rounds a participant keeps the truth about what it released; it never leaves the client."""

    folder: Path
    rounds: tuple[int, ...]

    def keep(self, participants: Participants, client: int, number: int, released: ClientWork) -> None:
        """Write the truth part of a capsule if the round is one of those asked for."""
        if number in self.rounds and released.truths:
            settings = participants.settings
            made: dict[str, Any] = {"data": settings.data, "arm": settings.arm, "round": number, "client": client}
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot write to {self.folder}: {error.strerror}; choose another place") from error
            write_truth(self.folder / name_capsule(number, client), released.truths, made)


@dataclass(frozen=True, eq=False)
class ParticipantApp:
    """Make the app of a participant; which one it is stands in the configuration of its node."""

    participants: Shared[Participants]
    truth: TruthKeeper | None = None

    def __call__(self) -> ClientApp:
        app = ClientApp()

        @app.train()
        def train(message: Message, context: Context) -> Message:
            return self.train(message, context)

        return app

    def train(self, message: Message, context: Context) -> Message:
        """Do the work of a round and release its update."""
        participants = self.participants.get()
        client = read_partition(context, participants.settings.clients)
        weights, number, rounds = read_instruction(message.content)
        with threads(participants.settings.training.threads):
            released = participants.client_round(client, number, rounds, weights)
        if self.truth is not None:
            self.truth.keep(participants, client, number, released)
        return Message(write_reply(client, released.update, released.loss), reply_to=message)


def read_partition(context: Context, clients: int) -> int:
    """Read which participant this node is."""
    number = context.node_config.get("partition-id")
    if not isinstance(number, int) or not 0 <= number < clients:
        raise SettingsError(
            f"the node's partition-id is {number}: give a whole number from 0 to {clients - 1}, as in "
            "--node-config 'partition-id=0'"
        )
    return number
