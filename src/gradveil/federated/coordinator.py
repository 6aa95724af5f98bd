"""The server's side of a run: its rounds, tests, journal, checkpoints, and the state to resume from."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradveil.errors import GradveilError, OutputError, SettingsError
from gradveil.federated.client_app import AppFactory, ParticipantApp, TruthKeeper
from gradveil.federated.flower import Grid
from gradveil.federated.outcomes import RoundOutcome
from gradveil.federated.participants import Participants
from gradveil.federated.server import Server
from gradveil.federated.state import load_state, save_state
from gradveil.federated.strategy import Capture, CheckedStrategy
from gradveil.federated.wire import to_arrays
from gradveil.journal import Journal, write_line
from gradveil.machine import threads
from gradveil.results import write_file
from gradveil.training import accuracy, save_checkpoint
from gradveil.workers import Shared

logger = logging.getLogger(__name__)
JOURNAL, CAPSULES, FINAL = "journal.jsonl", "capsules", "final.safetensors"
SAVE_SECONDS = 5.0
CONNECT_SECONDS = 300.0
OnRound = Callable[[RoundOutcome, int], None]
"""Called after a round with what came of it, and with the number of rounds."""


@dataclass(frozen=True)
class Recording:
    """What a run keeps: capsules of the rounds in `capture`, their truth if asked, and weights at `checkpoints`."""

    capture: tuple[int, ...] = ()
    keep_truth: bool = False
    checkpoints: tuple[int, ...] = ()

    def check(self, rounds: int) -> None:
        """Refuse rounds that will not take place, and truth without capsules."""
        for number in (*self.capture, *self.checkpoints):
            if not 1 <= number <= rounds:
                raise SettingsError(f"round {number} is to be kept and there are {rounds}: choose from 1 to {rounds}")
        if self.keep_truth and not self.capture:
            raise SettingsError("the truth is kept of captured rounds: name some with --capture, as in --capture 1,10")

    def truth_keeper(self, folder: Path) -> TruthKeeper | None:
        """Return what the clients of the run in `folder` keep of the truth, if anything."""
        return TruthKeeper(folder / CAPSULES, self.capture) if self.keep_truth else None


class Coordinator:
    """One run from its first round, or from where it was cut short, to its last."""

    def __init__(
        self,
        participants: Participants,
        folder: Path,
        recording: Recording,
        *,
        resume: bool = False,
        on_round: OnRound | None = None,
    ) -> None:
        self.participants, self.folder, self.recording = participants, folder, recording
        self.settings, self.data = participants.settings, participants.data
        self.rounds = self.settings.count_rounds(self.data)
        recording.check(self.rounds)
        # A partition that does not work is refused once, here, and not by every client.
        self.shares = participants.shares
        self.server = Server(participants, self.rounds)
        self.journal = Journal(folder / JOURNAL)
        self.on_round = on_round
        self.done, self.seconds = 0, 0.0
        if resume:
            self.done, self.seconds = load_state(folder, self.server, self.describe())
            self.cut_journal()
        else:
            save_state(folder, self.server, self.describe(), 0, 0.0)
        self.started = self.saved = time.monotonic()

    def describe(self) -> dict[str, Any]:
        """Say what the weights depend on; waiting longer for replies makes no other run."""
        record = {name: value for name, value in self.settings.to_record().items() if name != "timeout"}
        return {**record, "rounds": self.rounds, "images": len(self.data.train)}

    def cut_journal(self) -> None:
        """Leave out rounds after the saved one: they take place again; rounds before it must be there."""
        path, kept = self.journal.path, self.journal.read()[: self.done]
        if [line["round"] for line in kept] != list(range(1, self.done + 1)):
            raise OutputError(
                f"{path} lacks rounds up to the {self.done} that were saved: restore it from a copy, or start the run "
                "again with --overwrite"
            )
        write_file(path, b"".join(map(write_line, kept)))

    def make_app(self, participants: Shared[Participants]) -> AppFactory:
        """Make what makes the clients' apps, for engines that run them."""
        return ParticipantApp(participants, self.recording.truth_keeper(self.folder))

    def serve(self, grid: Grid, numbers: Mapping[int, int] | None = None) -> None:
        """Run the rounds that are left over a grid; `numbers` are the clients of its nodes, if they are known."""
        if self.done < self.rounds:
            wait_for_nodes(grid, self.settings.clients)
            strategy = CheckedStrategy(
                self.participants,
                self.server,
                done=self.done,
                numbers=numbers,
                capture=Capture(self.folder / CAPSULES, self.recording.capture),
                on_round=self.end_round,
            )
            with threads(self.settings.training.threads):
                strategy.start(
                    grid,
                    to_arrays(self.server.weights()),
                    num_rounds=self.rounds - self.done,
                    timeout=self.settings.timeout,
                )
        self.save_weights(FINAL, "final", self.rounds)

    def end_round(self, outcome: RoundOutcome) -> None:
        """Test if it is time, write the journal, then save the state: a saved round always has its line."""
        number = outcome.round
        stopped = outcome.valid < self.settings.needed
        if not stopped and self.participants.is_tested(number, self.rounds):
            outcome = replace(outcome, test_accuracy=accuracy(self.server.model, self.data.test))
        self.journal.append(outcome.to_record())
        if not stopped and number in self.recording.checkpoints:
            self.save_weights(f"round-{number}.safetensors", f"round-{number}", number)
        now = time.monotonic()
        if stopped or number == self.rounds or now - self.saved > SAVE_SECONDS:
            finished = number - 1 if stopped else number
            save_state(self.folder, self.server, self.describe(), finished, self.seconds + now - self.started)
            self.saved = now
        if self.on_round is not None:
            self.on_round(outcome, self.rounds)

    def save_weights(self, name: str, phase: str, number: int) -> None:
        """Write a checkpoint that every other command can load."""
        defences = self.participants.arm.defences
        made = {
            "model": self.settings.model,
            "settings": self.settings.training.to_record(),
            "seed": self.settings.seed,
            "data": self.settings.data,
            "images": len(self.data.train),
            "defences": [str(defence) for defence in defences],
            "model_defences": [str(defence) for defence in defences if "model" in defence.hooks],
            "phase": phase,
            "step": number,
            "federated": self.describe(),
        }
        save_checkpoint(self.folder / name, self.server.weights(), self.participants.spec, made)


def wait_for_nodes(grid: Grid, clients: int) -> None:
    """Wait until every client is there."""
    end = time.monotonic() + CONNECT_SECONDS
    while (there := len(list(grid.get_node_ids()))) < clients:
        if time.monotonic() > end:
            raise GradveilError(
                f"{there} of {clients} clients connected within {CONNECT_SECONDS:g} s: start the others"
            )
        time.sleep(0.1)
