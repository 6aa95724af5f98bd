"""A grid that runs somebody's ClientApp in this process, with the settings of nodes and of the run."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, final

from gradveil.federated.flower import ClientApp, Context, Error, Grid, Message, RecordDict
from gradveil.federated.flower_internals import RAISED, RUN_NUMBER, Run, make_run, number_message


@final
class AppGrid(Grid):
    """One node for each of the nodes' settings, numbered from 1."""

    def __init__(self, app: ClientApp, nodes: Iterable[Mapping[str, Any]], run_config: Mapping[str, Any]) -> None:
        self.app, self.current = app, make_run()
        self.contexts = {
            number: Context(RUN_NUMBER, number, dict(node), RecordDict(), dict(run_config))
            for number, node in enumerate(nodes, 1)
        }
        self.replies: dict[str, Message] = {}
        self.history: list[Message] = []

    @property
    def run(self) -> Run:
        return self.current

    def set_run(self, run: Run) -> None:
        self.current = run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        numbers = []
        for message in messages:
            number = str(len(self.history) + 1)
            number_message(message, number)
            message.content = copy.deepcopy(message.content)
            self.replies[number] = self.answer(message)
            self.history.append(self.replies[number])
            numbers.append(number)
        return numbers

    def answer(self, message: Message) -> Message:
        """Do as Flower does: whatever a client raises becomes an error reply."""
        try:
            return self.app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(RAISED, str(error)), reply_to=message)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.replies.pop(number) for number in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        del timeout
        return self.pull_messages(self.push_messages(messages))
