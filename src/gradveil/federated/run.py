"""A collaborative training from Python: `run_federated`."""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from torch import Tensor

from gradveil.data import DataSet
from gradveil.errors import SettingsError, UnknownNameError
from gradveil.federated.coordinator import CAPSULES, FINAL, JOURNAL, Coordinator, OnRound, Recording
from gradveil.federated.deployment import run_deployed
from gradveil.federated.exchange import Topology
from gradveil.federated.in_process import run_in_process
from gradveil.federated.outcomes import FederatedResult, RoundOutcome
from gradveil.federated.participants import Participants
from gradveil.federated.ray_engine import run_on_ray
from gradveil.federated.ring import run_decentralised
from gradveil.federated.secure_aggregation import PARTS, run_secure
from gradveil.federated.settings import FederatedSettings
from gradveil.federated.state import FILE as STATE
from gradveil.federated.state import read_state, write_state
from gradveil.journal import Journal
from gradveil.results import record, to_json, write_file
from gradveil.training import load_checkpoint

EngineName = Literal["in-process", "ray", "deployment"]
"""Where the clients run."""
TopologyName = Literal["server", "ring", "full"]
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
    topology: TopologyName = "server",
    observer: int = 0,
    secure: bool = False,
) -> FederatedResult:
    """Train together; the journal, checkpoints, capsules and federate.json go to the folder.

    The weights are the same on every engine, with any number of workers and in every topology. `resume` goes on with a
    run that was cut short in the folder. `root` is where the processes of a
    deployment find the data set, as in `gradveil.data.load`. Without a server the capsules are what the participant
    `observer` sees. With `secure` the server gets the mean of all updates only.
    """
    if engine not in get_args(EngineName):
        raise UnknownNameError("engine", engine, get_args(EngineName))
    if workers < 1:
        raise SettingsError(f"{workers} workers: give 1 or more")
    if settings.own and engine == "deployment":
        raise SettingsError(f"a deployment knows no defences of your own: leave out {', '.join(settings.own)}")
    check_topology(topology, engine, secure, checkpoints)
    folder.mkdir(parents=True, exist_ok=True)
    if not resume:
        clear_run(folder)
    recording = Recording(tuple(capture), keep_truth, tuple(checkpoints))
    coordinator = Coordinator(Participants(settings, data), folder, recording, resume=resume, on_round=progress)
    if topology != "server":
        run_without_server(coordinator, topology, observer)
    elif secure:
        run_secure(coordinator, workers)
    elif engine == "in-process":
        run_in_process(coordinator, workers)
    elif engine == "ray":
        run_on_ray(coordinator, workers)
    else:
        run_deployed(coordinator, root)
    result = read_result(folder)
    made = {**settings.to_record(), "engine": engine, "topology": topology, "secure": secure}
    write_file(folder / RESULT, to_json(record("federate", made, describe_result(recording, result))))
    return result


def check_topology(topology: str, engine: EngineName, secure: bool, checkpoints: Sequence[int]) -> None:
    """Refuse what does not go together."""
    if topology not in get_args(TopologyName):
        raise UnknownNameError("topology", topology, get_args(TopologyName))
    if engine != "in-process" and (secure or topology != "server"):
        what = "secure aggregation" if secure else f"the topology {topology}"
        raise SettingsError(f"{what} runs on this machine by itself: leave out the engine {engine}")
    if secure and topology != "server":
        raise SettingsError(f"secure aggregation needs a server: leave it out, or the topology {topology}")
    if checkpoints and topology != "server":
        raise SettingsError("a server keeps the weights of chosen rounds: leave out the checkpoints, or the topology")


def run_without_server(coordinator: Coordinator, topology: Topology, observer: int) -> None:
    """Let the participants train among themselves, and write down what they end with."""
    recording = coordinator.recording

    def keep(outcome: RoundOutcome, rounds: int) -> None:
        coordinator.journal.append(outcome.to_record())
        if coordinator.on_round is not None:
            coordinator.on_round(outcome, rounds)

    def save(number: int, tensors: dict[str, Tensor]) -> None:
        seconds = coordinator.seconds + time.monotonic() - coordinator.started
        write_state(coordinator.folder, tensors, coordinator.describe(), number, seconds)

    if coordinator.done < coordinator.rounds:
        result = run_decentralised(
            coordinator.settings,
            coordinator.data,
            coordinator.folder,
            topology=topology,
            capture=recording.capture,
            observer=observer,
            keep_truth=recording.keep_truth,
            progress=keep,
            done=coordinator.done,
            on_state=save,
        )
        coordinator.server.model.load_state_dict(result.weights)
    coordinator.save_weights(FINAL, "final", coordinator.rounds)


def read_result(folder: Path) -> FederatedResult:
    """Read back what a finished run left in its folder."""
    lines = Journal(folder / JOURNAL).read()
    state, _ = read_state(folder / STATE)
    name = str(state["made"]["model"])
    weights = load_checkpoint(folder / FINAL, name).weights
    return FederatedResult(weights, tuple(map(RoundOutcome.from_record, lines)), float(state["seconds"]))


def describe_result(recording: Recording, result: FederatedResult) -> dict[str, Any]:
    """Return the figures that federate.json holds."""
    return {
        "test_accuracy": result.test_accuracy,
        "rounds": [outcome.to_record() for outcome in result.rounds],
        "seconds": result.seconds,
        "checkpoints": ["final", *(f"round-{number}" for number in recording.checkpoints)],
        "captured": list(recording.capture),
        "truth": recording.keep_truth,
    }


def clear_run(folder: Path) -> None:
    """Remove what an earlier run left in a folder that may be overwritten."""
    for pattern in (RESULT, STATE, JOURNAL, "final.*", "round-*.*", "curve.png", f"{CAPSULES}/round-*-client-*.*"):
        for path in folder.glob(pattern):
            path.unlink()
    shutil.rmtree(folder / PARTS, ignore_errors=True)
