"""Start the processes of participants that depend on one another, listen to them, and end them all if one fails."""

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from gradveil.errors import GradveilError, InputError
from gradveil.workers import end_with_parent

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
"""How long a participant waits for the others to start."""
GRACE_SECONDS = 5.0
"""How long the others get to say why they stopped, once one participant has failed."""


class NeighbourError(GradveilError):
    """A neighbour that is gone or does not answer in time."""


@dataclass(frozen=True)
class RoundEnd:
    """A participant has finished round `number`; `result` is what it found, if it is the one to tell.

    `state` is what the next rounds depend on, as safetensors, if it is time to save it.
    """

    number: int
    result: Any = None
    state: bytes = b""


@dataclass(frozen=True)
class Finished:
    """A participant is through with all rounds and ends with `value`."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """A participant stopped; `kind` is the error to raise."""

    line: str
    kind: type[GradveilError]


class Work(Protocol):
    """The work of one participant: it can be pickled, reports the end of each round and returns its last value."""

    def __call__(self, rank: int, report: Callable[[RoundEnd], None]) -> Any: ...


def take_part(rank: int, work: Work, pipe: Connection) -> None:
    """Be one participant, from start to end, in a process of its own."""
    # An interrupt reaches the main process too, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        pipe.send(Finished(work(rank, pipe.send)))
    except GradveilError as error:
        kinds = (NeighbourError, InputError, GradveilError)
        pipe.send(Failed(str(error), next(kind for kind in kinds if isinstance(error, kind))))
    except Exception as error:
        logger.exception("participant %d", rank)
        pipe.send(Failed(f"participant {rank} failed: {type(error).__name__}: {error}", GradveilError))


@dataclass
class Member:
    """A participant as the supervisor sees it; one that ends without a last message has died."""

    process: BaseProcess
    pipe: Connection
    rounds: int = 0
    is_open: bool = True
    ended: Finished | Failed | None = None


@dataclass
class Supervisor:
    """Run `work` as `count` participants; `timeout` is how long they may be silent, in seconds."""

    work: Work
    count: int
    timeout: float
    on_round: Callable[[RoundEnd], None]
    members: list[Member] = field(default_factory=list)

    def run(self) -> list[Any]:
        """Return what each participant ends with; when this returns or raises, no process is left."""
        try:
            self.start()
            self.listen()
        finally:
            for member in self.members:
                member.process.kill()
                member.process.join()
                member.pipe.close()
        return [member.ended.value for member in self.members if isinstance(member.ended, Finished)]

    def start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        # torch imports its compiler, which takes seconds, with the first optimiser: once is enough for all processes.
        context.set_forkserver_preload([type(self.work).__module__, "torch._dynamo"])
        for rank in range(self.count):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=take_part, args=(rank, self.work, there), name=f"participant {rank}")
            process.start()
            self.members.append(Member(process, here))
            # Only the participant holds this end now: it closes when the participant ends, however it ends.
            there.close()

    def listen(self) -> None:
        """Take messages until all participants have ended; raise the first cause if one failed."""
        deadline = time.monotonic() + START_SECONDS + self.timeout
        failed = False
        while waiting := {member.pipe: member for member in self.members if member.is_open}:
            ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for member in [waiting[pipe] for pipe in waiting if pipe in ready]:
                self.receive(member)
            if not failed:
                failed = any(not (member.is_open or isinstance(member.ended, Finished)) for member in self.members)
                deadline = time.monotonic() + GRACE_SECONDS + (0.0 if failed else self.timeout)
        if not all(isinstance(member.ended, Finished) for member in self.members):
            self.raise_cause()

    def receive(self, member: Member) -> None:
        """Take one message; a pipe that is closed without a last message is a death."""
        try:
            message: RoundEnd | Finished | Failed = member.pipe.recv()
        except (EOFError, OSError):
            member.is_open = False
            return
        if isinstance(message, RoundEnd):
            member.rounds = message.number
            self.on_round(message)
        else:
            member.ended, member.is_open = message, False

    def raise_cause(self) -> None:
        """Log what each participant says, and raise the one error that the others follow from."""
        failures = [member.ended for member in self.members if isinstance(member.ended, Failed)]
        for failure in failures:
            logger.info("%s", failure.line)
        own = next((failure for failure in failures if failure.kind is not NeighbourError), None)
        if own is not None:
            raise own.kind(own.line)
        lost = [rank for rank, member in enumerate(self.members) if member.ended is None]
        cause = self.describe_loss(lost[0]) if lost else failures[0].line
        raise NeighbourError(f"{cause}; the others stopped: start the run again, or go on with --resume")

    def describe_loss(self, rank: int) -> str:
        """Say how a participant without a last message ended."""
        member = self.members[rank]
        where = f"participant {rank}, in round {member.rounds + 1},"
        if member.is_open:
            return f"{where} did not answer within {self.timeout:g} s"
        member.process.join(GRACE_SECONDS)
        code = member.process.exitcode or 0
        return f"{where} was killed by signal {-code}" if code < 0 else f"{where} ended with exit code {code}"
