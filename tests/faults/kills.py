"""Cut commands short, go on with them, and compare what they end with to what they end with undisturbed."""

import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.processes import (
    Command,
    Ended,
    FaultError,
    Place,
    new_place,
    on_file_operation,
    run_forked,
    start_forked,
    start_real,
    wait_until,
    warm_up,
)
from tests.faults.scenarios import Result, Scenario, differences, federate, read_result, scenarios, write_data

SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
WORDS = {signal.SIGTERM: "gradveil: terminated; ", signal.SIGINT: "gradveil: interrupted; "}
AT_A_TIME, AT_A_FILE = "time", "file operation"
WATCHING = 60.0


@dataclass(frozen=True)
class Reference:
    """A command that ran undisturbed: its result, its seconds, and how often it touched a file."""

    scenario: Scenario
    result: Result
    seconds: float
    operations: int
    bytes: int


@dataclass(frozen=True)
class Stage:
    """The commands with their undisturbed results, and the folder in which all of it lies."""

    root: Path
    references: tuple[Reference, ...]
    start_up: float

    def find(self, name: str) -> Reference:
        return next(one for one in self.references if one.scenario.name == name)


@dataclass(frozen=True)
class Plan:
    """One trial: a command, the signals that it gets one after the other, and when; a moment is a share of its run."""

    command: str
    signals: tuple[str, ...]
    moments: tuple[float, ...]
    at: str
    real: bool


@dataclass
class Trial:
    """What became of a trial; `kills` are the signals that came before the end, `late` the others."""

    plan: Plan
    kills: int = 0
    late: int = 0
    ways: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    slowest_end: float = 0.0
    fault: str | None = None

    def to_record(self) -> dict[str, Any]:
        return {
            "command": self.plan.command,
            "faults": list(self.plan.signals),
            "moments": [round(moment, 4) for moment in self.plan.moments],
            "at": self.plan.at,
            "process": "python -m gradveil" if self.plan.real else "forked",
            "kills": self.kills,
            "late": self.late,
            "ways": self.ways,
            "refusals": self.refusals,
            "slowest_end": round(self.slowest_end, 2),
            "fault": self.fault,
        }


@contextmanager
def prepared_stage(names: Sequence[str] | None = None) -> Iterator[Stage]:
    """Run every command once, undisturbed, and before that a training together that captures a round."""
    root = Path(tempfile.mkdtemp(prefix="gradveil-kills-"))
    write_data(root / "data.npz")
    try:
        warm_up(federate(root / "data.npz"), root / "federate")
        capsule = root / "federate" / "capsules" / "round-0001-client-00.safetensors"
        wanted = [one for one in scenarios(root / "data.npz", capsule) if names is None or one.name in names]
        references = tuple(measure(root, one) for one in wanted)
        yield Stage(root, references, measure_start_up(root, references[0]))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def measure(root: Path, scenario: Scenario) -> Reference:
    """Run a command to its end; count how often it touches a file."""
    with new_place(root) as place:
        counted = place.folder / "operations"

        def count(event: str, target: str) -> None:
            del event, target
            with open(counted, "ab", buffering=0) as stream:  # noqa: PTH123
                stream.write(b".")

        words = (*scenario.words, "--out", str(place.out))
        ended = run_forked(words, place, partial(on_file_operation, place.out, count))
        require(ended.code == 0, f"{scenario.name} ends with {ended.code}: {ended.said}")
        size = sum(path.stat().st_size for path in place.out.rglob("*") if path.is_file())
        return Reference(scenario, read_result(place.out), ended.seconds, counted.stat().st_size, size)


def measure_start_up(root: Path, reference: Reference) -> float:
    """Measure how much longer a real process takes, which must end with the same result."""
    with new_place(root) as place:
        ended = start_real((*reference.scenario.words, "--out", str(place.out)), place).wait()
        changed = differences(reference.result, read_result(place.out))
        require(ended.code == 0 and not changed, f"a real process ends with {ended.code} and other {changed}")
        return max(0.0, ended.seconds - reference.seconds)


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FaultError(otherwise)


def draw_plan(stage: Stage, seed: int) -> Plan:
    """Draw a trial; the commands, the signals and the kinds of moments take turns."""
    source = random.Random(f"kills {seed}")
    command = stage.references[seed % len(stage.references)].scenario.name
    turn = seed // len(stage.references)
    real = turn % 8 == 7
    at = AT_A_TIME if real or turn % 2 else AT_A_FILE
    count = 1 if real else source.choice((1, 1, 2, 3))
    signals = [list(SIGNALS)[turn % 3], *(source.choice(list(SIGNALS)) for _ in range(count - 1))]
    return Plan(command, tuple(signals), tuple(source.random() for _ in signals), at, real)


def run_trial(stage: Stage, plan: Plan) -> Trial:
    """Cut a command short as planned, go on with it, and compare."""
    trial = Trial(plan)
    reference = stage.find(plan.command)
    try:
        with new_place(stage.root) as place:
            for name, moment in zip(plan.signals, plan.moments, strict=True):
                if cut(stage, place, SIGNALS[name], moment, trial).code == 0:
                    compare(reference, place, trial, "came too late")
                    return trial
            revive(reference, place, trial)
    except FaultError as error:
        trial.fault = str(error)
    return trial


def cut(stage: Stage, place: Place, number: signal.Signals, moment: float, trial: Trial) -> Ended:
    """Start a command, send it a signal, and check how it ends; a refusal to go on is left to `revive`."""
    reference = stage.find(trial.plan.command)
    way = reference.scenario.onward if trial.kills and place.out.exists() else ()
    words = reference.scenario.command(place.out, way)
    if trial.plan.at == AT_A_FILE:
        last = round(moment * (reference.operations - 1))
        prepare = partial(on_file_operation, place.out, kill_at(last, number))
        sent, ended = None, start_forked(words, place, prepare).wait()
    else:
        command = (start_real if trial.plan.real else start_forked)(words, place)
        seconds = reference.seconds + (stage.start_up if trial.plan.real else 0)
        sent, ended = send(command, number, moment * seconds)
    if ended.code == 0 or (ended.code == 2 and trial.kills):
        trial.late += 1
        return ended
    trial.kills += 1
    if number in WORDS:
        check_stop(ended, number)
    else:
        require(ended.code == -number, f"killed, it ends with {ended.code}: {ended.said[-500:]}")
    if sent is not None and number in WORDS:
        trial.slowest_end = max(trial.slowest_end, command.started + ended.seconds - sent)
    check_nothing_left(place)
    return ended


def kill_at(last: int, number: signal.Signals) -> Callable[[str, str], None]:
    """Make what sends this process a signal before its file operation with the number `last`."""
    seen = 0

    def act(event: str, target: str) -> None:
        del event, target
        nonlocal seen
        if seen == last:
            os.kill(os.getpid(), number)
        seen += 1

    return act


def send(command: Command, number: signal.Signals, delay: float) -> tuple[float, Ended]:
    """Send a signal after a delay; SIGTERM and SIGINT count from when gradveil watches for them."""
    if number in WORDS:
        wait_until(lambda: command.is_watching() or command.is_over(), WATCHING)
    wait_until(command.is_over, delay)
    sent = time.monotonic()
    command.send(number)
    return sent, command.wait()


def check_stop(ended: Ended, number: signal.Signals) -> None:
    """Require the exit code of a signal and one line that says what is kept."""
    require(ended.code == 128 + number, f"{number.name} ends it with {ended.code}: {ended.said[-500:]}")
    is_line = len(ended.lines) == 1 and ended.lines[0].startswith(WORDS[number])
    require(is_line, f"{number.name} says {len(ended.lines)} lines: {ended.said[-800:]}")


def check_nothing_left(place: Place) -> None:
    """Require that no file is left in the folder of temporary files, where private images could be."""
    left = [str(path.relative_to(place.scratch)) for path in place.scratch.rglob("*") if path.is_file()]
    require(not left, f"left in the temporary folder: {left}")


def revive(reference: Reference, place: Place, trial: Trial) -> None:
    """Try the ways to go on until one works, and compare; the lines and jobs that were done must still count."""
    kept = read_lines(place.out)
    jobs = {path.name for path in (place.out / "work").glob("*.safetensors")}
    for way in reference.scenario.ways:
        words = reference.scenario.command(place.out, way)
        written: Path = place.folder / "written"
        ended = run_forked(words, place, partial(on_file_operation, place.out, partial(note, written)))
        if ended.code == 0:
            compare(reference, place, trial, " ".join(way) or "again")
            if way == reference.scenario.ways[0]:
                check_nothing_lost(place, kept, jobs, written)
            return
        is_line = len(ended.lines) == 1 and ended.lines[0].startswith("gradveil: ")
        require(ended.code == 2 and is_line, f"{way} ends with {ended.code}: {ended.said[-800:]}")
        trial.refusals.append(ended.lines[0].replace(str(place.folder), "…"))
    raise FaultError(f"nothing revives the folder: {trial.refusals}")


def compare(reference: Reference, place: Place, trial: Trial, way: str) -> None:
    """Require the undisturbed result, and that nothing else is left."""
    trial.ways.append(way)
    changed = differences(reference.result, read_result(place.out))
    require(not changed, f"it ends with something else in {changed}")
    check_nothing_left(place)


def note(path: Path, event: str, target: str) -> None:
    """Write down which file was moved to its place."""
    if event == "os.rename":
        with open(path, "a") as stream:  # noqa: PTH123
            stream.write(Path(target).name + "\n")


def read_lines(folder: Path) -> dict[str, bytes]:
    """Read the whole lines of every journal."""
    found = {path: path.read_bytes() for path in folder.rglob("*.jsonl")} if folder.exists() else {}
    return {str(path.relative_to(folder)): text[: text.rfind(b"\n") + 1] for path, text in found.items()}


def check_nothing_lost(place: Place, kept: dict[str, bytes], jobs: set[str], written: Path) -> None:
    """Require that every line is still there, and that no finished job of an audit was done again."""
    for name, lines in kept.items():
        if Path(name).name != "curves.jsonl":  # it is drawn anew from the state
            require((place.out / name).read_bytes().startswith(lines), f"lines of {name} were lost")
    again = jobs & set(written.read_text().split()) if written.exists() else set()
    require(not again, f"finished jobs were done again: {sorted(again)}")
