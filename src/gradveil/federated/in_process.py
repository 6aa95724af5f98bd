"""Flower without Flower's engines: a grid that runs the clients' apps in this process, or in processes beside it.

Apps and strategies are used as they are. A round is the same to the bit, however many processes share its work.
"""

import copy
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from gradveil.errors import OutputError
from gradveil.federated.client_app import AppFactory
from gradveil.federated.coordinator import Coordinator
from gradveil.federated.flower import Context, Error, Grid, Message, RecordDict, silenced
from gradveil.federated.flower_internals import CRASHED, RAISED, RUN_NUMBER, Run, make_run, number_message
from gradveil.workers import Job, JobDeathError, Report, Workers

Answer = tuple[Message, Context]
"""A reply, and the client's context after it."""
FIRST_NODE = 1
"""Flower gives the number 0 to nobody."""
REPEAT_SECONDS = 1.0
"""Time's up is said again after so long: Python drops what is raised inside a destructor or a garbage collection."""


class OutOfTimeError(BaseException):
    """Raised inside a client whose time is up; no `except Exception` of the client can swallow it."""


@dataclass(frozen=True, eq=False)
class ClientJob:
    """One client's answer to one message; None if it is not ready in time."""

    make_app: AppFactory
    message: Message
    context: Context
    timeout: float | None

    def run(self, report: Report) -> Answer | None:
        del report
        started = time.monotonic()
        try:
            with time_limit(self.timeout):
                reply = self.make_app()(self.message, self.context)
        except OutOfTimeError:
            return None
        except OutputError:
            # The folder is that of the run: without a place to write, no client is at fault, and the run ends.
            raise
        except Exception as error:
            # As in Flower: whatever a client raises becomes an error reply.
            reason = f"{type(error).__name__}: {error}"
            reply = Message(Error(RAISED, reason), reply_to=self.message)
        if self.timeout is not None and time.monotonic() - started > self.timeout:
            return None
        return reply, self.context


@dataclass(frozen=True)
class Idle:
    """A job that does nothing."""

    def run(self, report: Report) -> None:
        del report


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTimeError` in the block after so many seconds.

    A signal does it, which only the main thread can set; elsewhere a late reply is left out once it is there.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@final
class InProcessGrid(Grid):
    """A grid of `clients` nodes; the node of client N has the number N + 1.

    Each client has the whole of a round's time-out for itself, because they would work at the same time.
    """

    def __init__(self, make_app: AppFactory, clients: int, workers: Workers) -> None:
        self.make_app, self.workers = make_app, workers
        self.current = make_run()
        self.contexts = {
            FIRST_NODE + client: Context(
                RUN_NUMBER,
                FIRST_NODE + client,
                {"partition-id": client, "num-partitions": clients},
                RecordDict(),
                {},
            )
            for client in range(clients)
        }
        self.sent = 0
        self.replies: dict[str, Message] = {}

    @property
    def numbers(self) -> Mapping[int, int]:
        """The client of each node."""
        return {node: node - FIRST_NODE for node in self.contexts}

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
        return self.work(list(messages), None)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.replies.pop(number) for number in message_ids if number in self.replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.work(list(messages), timeout))

    def work(self, messages: list[Message], timeout: float | None) -> list[str]:
        """Let the nodes answer messages; keep the replies and return the messages' numbers."""
        numbers = []
        for message in messages:
            self.sent += 1
            numbers.append(str(self.sent))
            number_message(message, numbers[-1])
            # Flower's FedAvg hands all clients the same records; over a network each has its own.
            message.content = copy.deepcopy(message.content)
        jobs = [
            ClientJob(self.make_app, message, self.contexts[message.metadata.dst_node_id], timeout)
            for message in messages
        ]
        for number, message, answer in zip(numbers, messages, self.answers(jobs), strict=True):
            if answer is not None:
                self.replies[number], self.contexts[message.metadata.dst_node_id] = answer
        return numbers

    def answers(self, jobs: list[ClientJob]) -> list[Answer | None]:
        """Run the jobs; a client that kills its process again and again gets an error reply, and the others go on."""
        done: dict[int, Answer | None] = {}
        while len(done) < len(jobs):
            open_jobs = [position for position in range(len(jobs)) if position not in done]

            def keep(at: int, answer: Answer | None, places: list[int] = open_jobs) -> None:
                if at < len(places):
                    done[places[at]] = answer

            try:
                # With a second job beside it, a single one does not run in this process, which it might kill.
                batch: list[Job[Answer | None]] = [*(jobs[position] for position in open_jobs), Idle()]
                self.workers.run(batch, None, keep)
            except JobDeathError as error:
                job = jobs[open_jobs[error.position]]
                done[open_jobs[error.position]] = Message(Error(CRASHED, str(error)), reply_to=job.message), job.context
        return [done[position] for position in range(len(jobs))]


def run_in_process(coordinator: Coordinator, workers: int) -> None:
    """Run the clients in this process, or in `workers` processes of this machine."""
    participants = coordinator.participants
    with silenced(), Workers(workers, participants.settings.training.threads) as crew:
        grid = InProcessGrid(coordinator.make_app(crew.share(participants)), participants.settings.clients, crew)
        coordinator.serve(grid, grid.numbers)
