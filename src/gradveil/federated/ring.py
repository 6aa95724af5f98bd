"""Collaborative training without a server: every participant is a process and takes every step itself.

Each gets the updates of all others, directly or passed on around a ring, and computes the same mean in the same order.
So all hold the same weights to the bit, those of a run with a server; and each sees what the server would have seen.
"""

import hashlib
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load, save
from torch import Tensor

from gradveil.capsule import name_capsule, write_capsule, write_truth
from gradveil.client import Weights
from gradveil.data import DataSet
from gradveil.errors import GradveilError, InputError, SettingsError
from gradveil.federated.exchange import TOPOLOGIES, Neighbours, Packing, Topology, connected
from gradveil.federated.outcomes import Dropped, FederatedResult, RoundOutcome, check_update
from gradveil.federated.participants import ClientWork, Participants
from gradveil.federated.server import Server
from gradveil.federated.settings import FederatedSettings
from gradveil.federated.state import FILE, put_back, read_state, take_tensors
from gradveil.federated.supervisor import RoundEnd, Supervisor
from gradveil.machine import threads
from gradveil.training import accuracy
from gradveil.types import Update
from gradveil.workers import Shared, shared_in_file

CAPSULES = "capsules"
SAVE_SECONDS = 5.0
OnState = Callable[[int, dict[str, Tensor]], None]
"""Called with the number of a finished round and all tensors that the next rounds depend on."""


@dataclass(frozen=True)
class RingPlan:
    """What every participant is told; `meeting` and `data` are files.

    After `done` rounds of an earlier run, everyone starts from the state in `folder`. The first participant hands out
    the state after the last round, and whenever `save_seconds` have passed since it last did.
    """

    settings: FederatedSettings
    topology: Topology
    rounds: int
    capture: frozenset[int]
    observer: int
    keep_truth: bool
    folder: Path
    meeting: Path
    data: Shared[DataSet]
    done: int = 0
    save_seconds: float = SAVE_SECONDS

    def __call__(self, rank: int, report: Callable[[RoundEnd], None]) -> tuple[str, bytes]:
        """Be one participant: return the SHA-256 of the last weights, and the first participant the weights too."""
        data = self.data.get()
        with threads(self.settings.training.threads), connected(rank, self.settings.clients, self.meeting):
            weights = save(dict(Participant(rank, self, data).run(report)))
        return hashlib.sha256(weights).hexdigest(), weights if rank == 0 else b""


def run_decentralised(
    settings: FederatedSettings,
    data: DataSet,
    folder: Path,
    *,
    topology: Topology,
    rounds: int | None = None,
    capture: Collection[int] = (),
    observer: int = 0,
    keep_truth: bool = False,
    progress: Callable[[RoundOutcome, int], None] | None = None,
    done: int = 0,
    on_state: OnState | None = None,
) -> FederatedResult:
    """Train for so many rounds, those of the settings if None, and return what came of those that were left.

    In the rounds of `capture` the participant `observer` writes the update of each other one as a capsule to
    `folder/capsules`; with `keep_truth` these others write their truth next to it. `on_state` is called now and then
    with what a run needs to go on; one of which `done` rounds were finished goes on from the state in the folder.
    """
    rounds = settings.count_rounds(data) if rounds is None else rounds
    check_plan(settings, topology, rounds, capture, observer)
    started = time.perf_counter()
    if capture:
        (folder / CAPSULES).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gradveil-") as name, shared_in_file(data) as shared:
        meeting = Path(name) / "meeting"
        plan = RingPlan(
            *(settings, topology, rounds, frozenset(capture), observer, keep_truth, folder, meeting, shared),
            done=done,
            save_seconds=SAVE_SECONDS,
        )
        results: list[RoundOutcome] = []

        def keep(end: RoundEnd) -> None:
            if end.result is not None:
                results.append(end.result)
                if progress is not None:
                    progress(end.result, rounds)
            if end.state and on_state is not None:
                on_state(end.number, load(end.state))

        ends = Supervisor(plan, settings.clients, settings.timeout, keep).run()
    if len({digest for digest, _ in ends}) != 1:
        raise GradveilError("the participants ended with different weights: one of them passed on other updates")
    return FederatedResult(load(ends[0][1]), tuple(results), time.perf_counter() - started)


def check_plan(
    settings: FederatedSettings, topology: str, rounds: int, capture: Collection[int], observer: int
) -> None:
    if topology not in TOPOLOGIES:
        raise SettingsError(f"topology '{topology}': choose {' or '.join(TOPOLOGIES)}")
    if settings.clients < 2:
        raise SettingsError("1 participant has no neighbour: give 2 or more clients")
    if rounds < 1:
        raise SettingsError(f"{rounds} rounds: give 1 or more")
    if not 0 <= observer < settings.clients:
        raise SettingsError(f"observer {observer} of {settings.clients} participants: give 0 to {settings.clients - 1}")
    outside = sorted(number for number in capture if not 1 <= number <= rounds)
    if outside:
        raise SettingsError(f"round {outside[0]} cannot be captured: there are rounds 1 to {rounds}")


class Participant:
    """One participant at work; it takes the server's steps too."""

    def __init__(self, rank: int, plan: RingPlan, data: DataSet) -> None:
        self.rank, self.plan, self.data = rank, plan, data
        self.participants = Participants(plan.settings, data)
        self.server = Server(self.participants, plan.rounds)
        self.packing = Packing(self.server.model)
        self.neighbours = Neighbours(plan.topology, rank, plan.settings.clients, plan.settings.timeout)
        self.saved = time.monotonic()
        if plan.done:
            put_back(self.server, read_state(plan.folder / FILE)[1])

    def run(self, report: Callable[[RoundEnd], None]) -> Weights:
        """Take part in every round and return the last weights."""
        for number in range(self.plan.done + 1, self.plan.rounds + 1):
            sent = self.server.weights()
            released = self.participants.client_round(self.rank, number, self.plan.rounds, sent)
            rows = self.neighbours.gather(self.packing.pack(released.update))
            updates, dropped = self.read(rows, number, sent)
            if number in self.plan.capture:
                self.capture(number, sent, released, updates)
            self.require_enough(number, len(updates), dropped)
            self.server.apply(list(updates.values()), number)
            tested = self.test(number, len(updates), dropped) if self.rank == 0 else None
            report(RoundEnd(number, tested, self.state(number)))
        return self.server.weights()

    def state(self, number: int) -> bytes:
        """Return what the next rounds depend on if it is time; all have the same, and the first one hands it out."""
        is_due = number == self.plan.rounds or time.monotonic() - self.saved >= self.plan.save_seconds
        if self.rank != 0 or not is_due:
            return b""
        self.saved = time.monotonic()
        return save(take_tensors(self.server))

    def read(self, rows: dict[int, Tensor], number: int, sent: Weights) -> tuple[dict[int, Update], list[Dropped]]:
        """Tell usable updates from others; everyone sees the same bytes, so everyone drops the same ones."""
        updates: dict[int, Update] = {}
        dropped: list[Dropped] = []
        for client, row in rows.items():
            try:
                update = self.packing.unpack(row, self.participants.local(number, self.plan.rounds, client))
                check_update(update, sent, self.participants.count_images(client), self.plan.settings.largest_norm)
                updates[client] = update
            except InputError as error:
                dropped.append(Dropped(client, str(error)))
        return updates, dropped

    def require_enough(self, number: int, valid: int, dropped: list[Dropped]) -> None:
        settings = self.plan.settings
        if valid < settings.needed:
            raise GradveilError(
                f"round {number} stopped: {valid} of {settings.clients} updates are valid and {settings.needed} are "
                f"needed ({dropped[0]}): mend the participants and start again"
            )

    def capture(self, number: int, sent: Weights, released: ClientWork, updates: dict[int, Update]) -> None:
        """Write down what the observer sees, or, as one whom it sees, the truth about it."""
        plan, settings = self.plan, self.plan.settings
        for client, update in updates.items():
            path = plan.folder / CAPSULES / name_capsule(number, client)
            if self.rank == plan.observer and client != self.rank:
                write_capsule(path, self.participants.round_of(client, number, sent, update), number)
            elif self.rank == client and client != plan.observer and plan.keep_truth:
                made = {"data": settings.data, "arm": settings.arm, "round": number, "client": client}
                write_truth(path, released.truths, made)

    def test(self, number: int, valid: int, dropped: list[Dropped]) -> RoundOutcome:
        """Test the new weights if it is time; one participant does it for all, because all have the same."""
        is_tested = self.participants.is_tested(number, self.plan.rounds)
        tested = accuracy(self.server.model, self.data.test) if is_tested else None
        return RoundOutcome(number, valid, tuple(dropped), None, tested)
