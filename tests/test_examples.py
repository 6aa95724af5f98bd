"""The example app, as it is and with the few lines that protect it, really run."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from flwr.serverapp.strategy import FedAvg

from gradveil.attacks import find_attack
from gradveil.audit.preflight import preflight
from gradveil.capsule import read_capsule, read_truth
from gradveil.data import load
from gradveil.federated import AppModel, CapturingStrategy, DefenceMod, GateMod
from gradveil.federated.flower import ArrayRecord, ClientApp, Message
from gradveil.metrics import psnr
from gradveil.rng import generator
from gradveil.rounds import Round
from gradveil.transforms import parse_policy
from gradveil.types import Batch, LocalTraining
from tests.federated.grid import AppGrid

FOLDER = Path(__file__).parent.parent / "examples" / "flower-app"
DIFF = FOLDER / "PROTECT.diff"
RUN = {"batch-size": 32, "local-epochs": 3, "learning-rate": 0.02, "shuffle": True}
VICTIM = 3
"""The position of the attacked image in the training split, and the client that has it."""


@contextmanager
def app_in(folder: Path) -> Iterator[ModuleType]:
    """Import the app that is in a folder, and forget it afterwards."""
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("fashion.server_app")
        yield importlib.import_module("fashion.client_app")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "fashion"]:
            del sys.modules[name]


@pytest.fixture
def plain() -> Iterator[ModuleType]:
    with app_in(FOLDER) as module:
        yield module


@pytest.fixture
def protected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example with PROTECT.diff applied, working in an empty folder."""
    shutil.copytree(FOLDER / "fashion", tmp_path / "fashion", ignore=shutil.ignore_patterns("__pycache__"))
    # Within a repository, git would look for the files from its root.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", str(DIFF)], cwd=tmp_path, env=environment, check=True)
    monkeypatch.chdir(tmp_path)
    with app_in(tmp_path) as module:
        yield module


def task() -> ModuleType:
    return importlib.import_module("fashion.task")


def describe(**local: Any) -> AppModel:
    training: dict[str, Any] = {"epochs": 3, "batch_size": 32, "learning_rate": 0.02, "momentum": 0.9, "mode": "train"}
    constants = (task().MEAN,), (task().STD,)
    return AppModel(task().Net(), (1, 28, 28), 10, *constants, LocalTraining(**{**training, **local}))


def first_weights() -> ArrayRecord:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ArrayRecord(task().Net().state_dict())


def capture(app: ClientApp, folder: Path, described: AppModel, clients: int, known: str = "none", **run: Any) -> Round:
    """Let the client of the victim work for one round; return what the server captured."""
    grid = AppGrid(app, [{"partition-id": VICTIM, "num-partitions": clients}], {**RUN, **run})
    inner = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
    CapturingStrategy(inner, described, folder, [1], known).start(grid, first_weights(), num_rounds=1)
    return read_capsule(folder / "round-0001-client-01.safetensors", described.pixel_model())


def victims(clients: int) -> Batch:
    """Return the images of the client of the victim."""
    split = load("fashion-mnist-sample").train
    own = slice(VICTIM, None, clients)
    return Batch(split.images[own], split.labels[own])


def advantage(captured: Round, described: AppModel) -> float:
    """Attack one captured image; return by how many dB the attack is above chance."""
    truth = victims(5000)
    floor = GateMod(described, load("fashion-mnist-sample").test.batch()).find_floor(truth.pixels())
    attack = find_attack("adam-cosine").with_steps(300)
    result = attack(captured.task(None, "cpu"), captured.update, generator(0, "example"))
    assert result.status == "ok"
    return float(psnr(result.images, truth.pixels()) - psnr(floor.guess(truth.labels), truth.pixels()))


def test_the_diff_adds_a_few_lines_and_applies(protected: ModuleType) -> None:
    lines = DIFF.read_text().splitlines()
    added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    removed = [line for line in lines if line.startswith("-") and not line.startswith("---")]
    assert len(added) <= 22
    assert len(removed) <= 2
    mods = [type(mod).__name__ for mod in protected.app._mods]
    assert mods == ["CaptureMod", "GateMod", "DefenceMod"]


def test_the_app_learns_as_it_is(plain: ModuleType) -> None:
    evaluate = importlib.import_module("fashion.server_app").evaluate
    grid = AppGrid(plain.app, [{"partition-id": client, "num-partitions": 20} for client in range(2)], RUN)
    result = FedAvg(fraction_evaluate=0.0).start(grid, first_weights(), num_rounds=2, evaluate_fn=evaluate)
    before, _, after = (float(str(metrics["accuracy"])) for metrics in result.evaluate_metrics_serverapp.values())
    assert before < 0.3
    assert after > 0.6


def test_the_simulation_reproduces_the_apps_update(plain: ModuleType, tmp_path: Path) -> None:
    """Momentum, three epochs, batches of 32 with a smaller last one, normalisation, batch statistics."""
    captured = capture(plain.app, tmp_path, describe(), 71, shuffle=False)
    assert captured.update.images == 71
    assert captured.update.local.count_steps(71) == 9
    check = preflight(captured.task(None, "cpu"), victims(71), captured.update)
    assert check.agrees, check
    tracked = captured.update.buffers and captured.update.buffers["1.norm1.num_batches_tracked"]
    assert isinstance(tracked, torch.Tensor)
    assert (tracked.dtype, int(tracked)) == (torch.int64, 9)


def test_a_wrong_description_of_the_training_is_seen(plain: ModuleType, tmp_path: Path) -> None:
    captured = capture(plain.app, tmp_path, describe(momentum=0.0), 71, shuffle=False)
    assert not preflight(captured.task(None, "cpu"), victims(71), captured.update).agrees


@pytest.mark.slow
def test_the_server_rebuilds_the_image_of_a_client_unless_it_is_defended(plain: ModuleType, tmp_path: Path) -> None:
    described = describe(epochs=1)
    run: Mapping[str, Any] = {"local-epochs": 1}
    undefended = advantage(capture(plain.app, tmp_path / "plain", described, 5000, **run), described)
    defence = "clip:1,gaussian:3e-2"
    defended_app = ClientApp(mods=[DefenceMod(described, default=defence)])
    defended_app.train()(plain.train)
    defended = advantage(capture(defended_app, tmp_path / "defended", described, 5000, defence, **run), described)
    assert undefended > 3
    assert defended < 0


def ask_protected(app: ClientApp, defence: str) -> Message:
    """Let the client of one image work for one round."""
    node = {"partition-id": VICTIM, "num-partitions": 5000, "gradveil-defence": defence}
    grid = AppGrid(app, [node], RUN)
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
    strategy.start(grid, first_weights(), num_rounds=1)
    return grid.history[0]


@pytest.mark.slow
def test_the_protected_app_refuses_without_its_defence_and_sends_with_it(protected: ModuleType, tmp_path: Path) -> None:
    # The policy of the app's loader draws from torch's global state. The draw is fixed, so that the test repeats;
    # `python -m scripts.measure_gate` measures how often the gate refuses over images and draws.
    torch.manual_seed(0)
    refused = ask_protected(protected.app, "none")
    assert refused.has_error()
    assert "GateMod sends nothing" in str(refused.error.reason)
    assert not (tmp_path / "capsules").exists()

    assert ask_protected(protected.app, "clip:1,gaussian:1e-1").has_content()
    path = tmp_path / "capsules" / f"round-0001-client-{VICTIM:02d}.safetensors"
    captured = read_capsule(path, protected.described.pixel_model())
    assert [str(defence) for defence in captured.known_defences] == [
        *("policy:3-1-7+43-18-18", "clip:1"),
        "gaussian:0.1",
    ]
    (truth,) = read_truth(path)
    assert truth.label == int(victims(5000).labels[0])


def test_a_policy_is_a_transform_of_a_loader(plain: ModuleType) -> None:
    del plain
    policy = parse_policy("3-1-7+43-18-18")
    torch.manual_seed(0)
    (changed, labels), *_ = task().load_training(VICTIM, 500, 10, False, transform=policy)
    (images, same), *_ = task().load_training(VICTIM, 500, 10, False)
    assert torch.equal(labels, same)
    assert changed.shape == images.shape
    pixels = changed * task().STD + task().MEAN
    assert float(pixels.min()) > -1e-5
    assert float(pixels.max()) < 1 + 1e-5
    assert ((changed - images).abs().flatten(1).amax(1) > 0.1).all()
    # Each image got one of the draws of the policy.
    own = (images * task().STD + task().MEAN)[:1]
    draws = policy.draws()
    possible = policy.apply(own.expand(len(draws), -1, -1, -1), draws)
    assert bool(((possible - pixels[:1]).abs().flatten(1).amax(1) < 1e-4).any())
