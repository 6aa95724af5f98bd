"""Cut commands short for long; the journal says where it was."""

import time
from pathlib import Path

from gradveil.journal import Journal
from gradveil.results import provenance
from tests.faults.kills import Trial, draw_plan, prepared_stage, run_trial

JOURNAL = "kills.jsonl"


def run(folder: Path, minutes: float) -> None:
    """Run one trial after the other until the time is over."""
    journal = Journal(folder / JOURNAL)
    seed = max((line["seed"] + 1 for line in journal.read() if "seed" in line), default=0)
    stop = time.monotonic() + 60 * minutes
    with prepared_stage() as stage:
        while time.monotonic() < stop:
            trial = run_trial(stage, draw_plan(stage, seed))
            journal.append({"seed": seed, **trial.to_record(), "made_by": provenance()})
            print(describe(seed, trial), flush=True)
            seed += 1


def describe(seed: int, trial: Trial) -> str:
    plan = trial.plan
    return f"{seed}: {plan.command}, {', '.join(plan.signals)}, {trial.kills} kills, {trial.ways} {trial.fault or ''}"
