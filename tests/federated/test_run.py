"""A run from Python: its files, its capsules, and one contract for all engines."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gradveil import data
from gradveil.capsule import name_capsule, read_capsule, read_truth
from gradveil.client import Client
from gradveil.errors import InputError, OutputError, SettingsError, UnknownNameError
from gradveil.federated import FederatedResult, run_federated
from gradveil.federated.run import EngineName, TopologyName, read_result
from gradveil.rng import generator
from gradveil.types import Batch
from tests.federated.scenes import QUICK, make_participants, same, small_data

SETTINGS = replace(QUICK, clients=2, rounds=2, arm="crop-flip", timeout=600.0)
SCRIPT = """
from pathlib import Path
from gradveil import data
from gradveil.federated import run_federated
from tests.federated.test_run import SETTINGS
if __name__ == "__main__":
    sample = data.load("fashion-mnist-sample")
    run_federated(SETTINGS, sample, Path({folder!r}), engine={engine!r}, workers=2, capture=[2], keep_truth=True)
"""


def run(folder: Path, engine: EngineName = "in-process", workers: int = 1, **changes: object) -> FederatedResult:
    participants = make_participants(**changes)
    return run_federated(participants.settings, small_data(), folder, engine=engine, workers=workers)


def test_the_record_has_every_round(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    result = run_federated(
        QUICK, small_data(), tmp_path, progress=lambda outcome, rounds: seen.append((outcome.round, rounds))
    )
    record = json.loads((tmp_path / "federate.json").read_text())
    assert [entry["round"] for entry in record["rounds"]] == [1, 2, 3]
    assert [(entry["valid"], entry["dropped"]) for entry in record["rounds"]] == [(4, [])] * 3
    assert [entry["test_accuracy"] is None for entry in record["rounds"]] == [True, True, False]
    assert record["test_accuracy"] == record["rounds"][-1]["test_accuracy"] == result.test_accuracy
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert record["settings"]["engine"] == "in-process"


def test_captured_rounds_replay(tmp_path: Path) -> None:
    """The update of the capsule is what the images of its truth give at the weights that were sent."""
    run_federated(QUICK, small_data(), tmp_path, capture=[1, 3], keep_truth=True)
    names = sorted(path.name for path in (tmp_path / "capsules").iterdir())
    assert len(names) == 2 * 4 * 3
    path = tmp_path / "capsules" / name_capsule(3, 2)
    assert path.with_suffix(".json").stat().st_mode & 0o077 == 0
    captured, truths = read_capsule(path), read_truth(path)
    task = captured.task(None, "cpu")
    batch = Batch(torch.cat([truth.transformed for truth in truths]), torch.tensor([truth.label for truth in truths]))
    again = Client(task.model, captured.update.local).update(captured.weights, batch, (), generator(0, "replay"))
    for name, tensor in captured.update.tensors.items():
        torch.testing.assert_close(again.tensors[name], tensor, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_place_for_the_truth_the_run_ends_and_drops_no_client(workers: int, tmp_path: Path) -> None:
    (tmp_path / "capsules").write_text("a file in the way")
    with pytest.raises(OutputError, match=r"cannot write to .*capsules"):
        run_federated(QUICK, small_data(), tmp_path, workers=workers, capture=[1], keep_truth=True)
    assert not (tmp_path / "journal.jsonl").exists()


def test_a_run_in_an_old_folder_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    run_federated(QUICK, small_data(), tmp_path, capture=[1, 2], checkpoints=[1])
    run(tmp_path)
    assert not list((tmp_path / "capsules").iterdir())
    assert not (tmp_path / "round-1.safetensors").exists()
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 3


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="deployment, in-process, ray"):
        run(tmp_path, "flower")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="0 workers"):
        run(tmp_path, workers=0)


@pytest.mark.parametrize("topology", ["ring", "full"])
def test_without_a_server_the_weights_and_the_capsules_are_the_same(tmp_path: Path, topology: TopologyName) -> None:
    folders = [tmp_path / "server", tmp_path / "none"]
    names: list[TopologyName] = ["server", topology]
    results = [
        run_federated(QUICK, small_data(), folder, topology=name, capture=[2], keep_truth=True)
        for folder, name in zip(folders, names, strict=True)
    ]
    assert same(results[0].weights, results[1].weights)
    assert results[0].test_accuracy == results[1].test_accuracy
    assert json.loads((folders[1] / "federate.json").read_text())["settings"]["topology"] == topology
    # The observer, participant 0, sees all updates but its own.
    for client in (1, 2, 3):
        ours, theirs = (folder / "capsules" / name_capsule(2, client) for folder in folders)
        assert ours.read_bytes() == theirs.read_bytes()
        for first, second in zip(read_truth(ours), read_truth(theirs), strict=True):
            assert (first.image, first.label) == (second.image, second.label)
            assert torch.equal(first.transformed, second.transformed)
    assert not (folders[1] / "capsules" / name_capsule(2, 0)).exists()


def test_with_secure_aggregation_the_weights_differ_by_its_rounding_only(tmp_path: Path) -> None:
    plain = run(tmp_path / "plain")
    secure = run_federated(QUICK, small_data(), tmp_path / "secure", secure=True, capture=[1])
    for name, tensor in plain.weights.items():
        torch.testing.assert_close(secure.weights[name], tensor, atol=1e-5, rtol=1e-4)
    assert [path.name for path in (tmp_path / "secure" / "capsules").glob("*.json")] == ["round-0001-client-00.json"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topology": "star"}, "unknown topology"),
        ({"topology": "ring", "engine": "ray"}, "leave out the engine ray"),
        ({"secure": True, "engine": "deployment"}, "leave out the engine deployment"),
        ({"secure": True, "topology": "full"}, "needs a server"),
        ({"topology": "ring", "checkpoints": [1]}, "leave out the checkpoints"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        run_federated(QUICK, small_data(), tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def run_with_empty_home(folder: Path, engine: str) -> Path:
    """Run in a process of its own: Ray leaves processes behind that outlive a test for a while."""
    home = folder / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FLWR_", "RAY_"))}
    environment |= {"HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    (folder / "script.py").write_text(SCRIPT.format(folder=str(folder / engine), engine=engine))
    ended = subprocess.run(
        [sys.executable, str(folder / "script.py")], env=environment, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
    return home


def test_the_home_folder_stays_empty(tmp_path: Path) -> None:
    assert list(run_with_empty_home(tmp_path, "in-process").rglob("*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", "deployment"])
def test_every_engine_ends_with_the_same_weights(tmp_path: Path, engine: EngineName) -> None:
    """The contract: the same settings give the same weights, journal and capsules wherever the clients run."""
    sample = data.load("fashion-mnist-sample")
    here = run_federated(SETTINGS, sample, tmp_path / "in-process", capture=[2], keep_truth=True)
    assert list(run_with_empty_home(tmp_path, engine).rglob("*")) == []
    there = read_result(tmp_path / engine)
    assert same(here.weights, there.weights)
    assert here.rounds == there.rounds
    for client in range(2):
        first, second = (tmp_path / name / "capsules" / name_capsule(2, client) for name in ("in-process", engine))
        assert first.read_bytes() == second.read_bytes()
        truths = [read_truth(path) for path in (first, second)]
        assert [truth.image for truth in truths[0]] == [truth.image for truth in truths[1]]
