"""A collaborative training from Python: `run_federated`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from gradveil.data import DataSet
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.federated.coordinator import CAPSULES, FINAL, JOURNAL, Coordinator, OnRound, Recording
from gradveil.federated.deployment import run_deployed
from gradveil.federated.in_process import run_in_process
from gradveil.federated.outcomes import FederatedResult, RoundOutcome
from gradveil.federated.participants import Participants
from gradveil.federated.ray_engine import run_on_ray
from gradveil.federated.settings import FederatedSettings
from gradveil.federated.state import FILE as STATE
from gradveil.federated.state import read_state
from gradveil.journal import Journal
from gradveil.results import record, to_json, write_file
from gradveil.training import load_checkpoint

EngineName = Literal["in-process", "ray", "deployment"]
RESULT = "federate.json"


def run_federated(
    settings: FederatedSettings,
    data: DataSet,
    folder: Path,
    *,
    engine: EngineName = "in-process",
    workers: int = 1,
    capture: Sequence[int] = (),
    keep_truth: bool = False,
    checkpoints: Sequence[int] = (),
    resume: bool = False,
    progress: OnRound | None = None,
    root: Path | None = None,
) -> FederatedResult:
    """Train together; the journal, checkpoints, capsules and federate.json go to the folder.

    The weights are the same on every engine and with any number of workers. `resume` goes on with a run that was cut
    short in the folder. `root` is where the processes of a deployment find the data set, as in `gradveil.data.load`.
    """
    if engine not in get_args(EngineName):
        raise UnknownNameError("engine", engine, get_args(EngineName))
    if workers < 1:
        raise SettingsError(f"{workers} workers: give 1 or more")
    folder.mkdir(parents=True, exist_ok=True)
    if not resume:
        clear_run(folder)
    recording = Recording(tuple(capture), keep_truth, tuple(checkpoints))
    coordinator = Coordinator(Participants(settings, data), folder, recording, resume=resume, on_round=progress)
    if engine == "in-process":
        run_in_process(coordinator, workers)
    elif engine == "ray":
        run_on_ray(coordinator, workers)
    else:
        run_deployed(coordinator, root)
    result = read_result(folder)
    write_file(folder / RESULT, to_json(describe_result(settings, engine, recording, result)))
    return result


def read_result(folder: Path) -> FederatedResult:
    """Read back what a finished run left in its folder."""
    lines = Journal(folder / JOURNAL).read()
    state, _ = read_state(folder / STATE)
    name = str(json.loads((folder / FINAL).with_suffix(".json").read_text())["model"]["name"])
    weights = load_checkpoint(folder / FINAL, name).weights
    return FederatedResult(weights, tuple(map(RoundOutcome.from_record, lines)), float(state["seconds"]))


def describe_result(
    settings: FederatedSettings, engine: EngineName, recording: Recording, result: FederatedResult
) -> dict[str, Any]:
    """Make the record that federate.json holds."""
    figures = {
        "test_accuracy": result.test_accuracy,
        "rounds": [outcome.to_record() for outcome in result.rounds],
        "seconds": result.seconds,
        "checkpoints": ["final", *(f"round-{number}" for number in recording.checkpoints)],
        "captured": list(recording.capture),
        "truth": recording.keep_truth,
    }
    return record("federate", {**settings.to_record(), "engine": engine}, figures)


def clear_run(folder: Path) -> None:
    """Remove what an earlier run left in a folder that may be overwritten."""
    for pattern in (RESULT, STATE, JOURNAL, "final.*", "round-*.*", "curve.png", f"{CAPSULES}/round-*-client-*.*"):
        for path in folder.glob(pattern):
            path.unlink()
