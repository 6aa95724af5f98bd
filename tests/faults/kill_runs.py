"""Cut commands short for long; the journal says where it was."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gradveil.journal import Journal
from gradveil.results import provenance
from tests.faults.kills import Stage, Trial, draw_plan, prepared_stage, run_trial
from tests.faults.places import can_mount, fill_disk, lock_folder
from tests.faults.worker_deaths import COMMANDS, kill_worker

JOURNAL = "kills.jsonl"
Cut = Callable[[Stage, int], Trial]


def send_signals(stage: Stage, seed: int) -> Trial:
    return run_trial(stage, draw_plan(stage, seed))


def fail_disk(stage: Stage, seed: int) -> Trial:
    return fill_disk(stage, stage.references[seed % len(stage.references)], seed)


def fail_folder(stage: Stage, seed: int) -> Trial:
    return lock_folder(stage, stage.references[seed % len(stage.references)], seed)


def fail_worker(stage: Stage, seed: int) -> Trial:
    return kill_worker(stage, stage.find(COMMANDS[seed % len(COMMANDS)]), seed)


CUTS: dict[str, Cut] = {"signals": send_signals, "disk": fail_disk, "folder": fail_folder, "worker": fail_worker}
TURNS = ("signals", "signals", "disk", "signals", "folder", "signals", "signals", "worker")


def list_open(lines: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """List the trials that failed when they were last run."""
    latest = {(line.get("kind", "signals"), line["seed"]): line["fault"] for line in lines}
    return [trial for trial, fault in latest.items() if fault]


def run(folder: Path, minutes: float) -> None:
    """Run one trial after the other until the time is over; those that failed come first."""
    journal = Journal(folder / JOURNAL)
    lines = journal.read()
    seeds = {
        kind: max((line["seed"] + 1 for line in lines if line.get("kind", "signals") == kind), default=0)
        for kind in CUTS
    }
    stop = time.monotonic() + 60 * minutes
    with prepared_stage() as stage:
        again, turn = list_open(lines), 0
        while time.monotonic() < stop:
            kind = TURNS[turn % len(TURNS)]
            turn += 1
            if kind == "disk" and not can_mount():
                continue
            kind, seed = again.pop(0) if again else (kind, seeds[kind])
            seeds[kind] = max(seeds[kind], seed + 1)
            trial = CUTS[kind](stage, seed)
            journal.append({"kind": kind, "seed": seed, **trial.to_record(), "made_by": provenance()})
            print(describe(seed, trial), flush=True)


def describe(seed: int, trial: Trial) -> str:
    plan = trial.plan
    return f"{seed}: {plan.command}, {', '.join(plan.signals)}, {trial.kills} kills, {trial.ways} {trial.fault or ''}"
