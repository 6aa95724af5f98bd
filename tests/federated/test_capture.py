"""Capsules of somebody's app, captured by the client or by the server."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from flwr.serverapp.strategy import FedAvg
from torch import Tensor

from gradveil.audit.preflight import preflight
from gradveil.capsule import CapsulePaths, read_capsule, read_round_number, read_truth
from gradveil.federated.capture import CaptureMod, CapturingStrategy
from gradveil.federated.flower import ArrayRecord, Message
from gradveil.federated.mods import DEFENCE, DefenceMod
from gradveil.rounds import Captured
from gradveil.types import Batch
from tests.federated.grid import AppGrid
from tests.federated.small_app import ask, describe, make_app, make_images, make_net, read_arrays, true_change

CAPSULE = "round-0003-client-07.safetensors"


def test_a_clients_capsule_replays_what_left(tmp_path: Path) -> None:
    app = describe()
    ask(make_app([CaptureMod(app, tmp_path, keep_truth=True)]), {})
    captured = read_capsule(tmp_path / CAPSULE, app.pixel_model())
    truths = tuple(read_truth(tmp_path / CAPSULE))
    assert read_round_number(tmp_path / CAPSULE) == 3
    assert torch.equal(torch.cat([truth.original for truth in truths]), app.to_pixels(make_images()[0]))
    assert captured.known_defences == ()
    check = preflight(captured.task(None, "cpu"), Captured(captured, truths).transformed(), captured.update)
    assert check.agrees, check


def test_the_preflight_sees_other_images(tmp_path: Path) -> None:
    app = describe()
    ask(make_app([CaptureMod(app, tmp_path)]), {})
    captured = read_capsule(tmp_path / CAPSULE, app.pixel_model())
    images, labels = make_images()
    other = Batch(app.to_pixels(images.flip(3)), labels)
    assert not preflight(captured.task(None, "cpu"), other, captured.update).agrees


def test_it_captures_the_defended_update_and_names_the_defence(tmp_path: Path) -> None:
    app = describe()
    mods = [CaptureMod(app, tmp_path), DefenceMod(app)]
    ask(make_app(mods), {DEFENCE: "clip:0.01,prune:50"})
    captured = read_capsule(tmp_path / CAPSULE, app.pixel_model())
    assert [str(defence) for defence in captured.known_defences] == ["clip:0.01", "prune:50"]
    assert torch.cat([tensor.flatten() for tensor in captured.update.tensors.values()]).norm() < 0.0101


def test_differences_are_captured_as_they_are(tmp_path: Path) -> None:
    app = describe(sends="difference")
    ask(make_app([CaptureMod(app, tmp_path), DefenceMod(app)]), {DEFENCE: "none"})
    update = read_capsule(tmp_path / CAPSULE, app.pixel_model()).update
    assert all(torch.allclose(update.tensors[f"1.{name}"], true_change()[name], atol=1e-7) for name in app.trained)


def test_only_chosen_rounds_are_captured_and_the_truth_on_request(tmp_path: Path) -> None:
    ask(make_app([CaptureMod(describe(), tmp_path / "other", rounds=[1, 2], keep_truth=True)]), {})
    assert not (tmp_path / "other").exists()
    ask(make_app([CaptureMod(describe(), tmp_path / "chosen", rounds=[3])]), {})
    assert (tmp_path / "chosen" / CAPSULE).exists()
    assert not CapsulePaths.of(tmp_path / "chosen" / CAPSULE).truth.exists()


def make_nan(state: dict[str, Tensor]) -> None:
    state["head.bias"] = torch.full((3,), float("nan"))


def test_a_capture_that_fails_is_logged_and_the_reply_leaves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gradveil"):
        assert ask(make_app([CaptureMod(describe(), tmp_path)], make_nan), {}).has_content()
    assert "not captured" in caplog.text
    assert list(tmp_path.iterdir()) == []


def run_strategy(folder: Path, spoil: Any = lambda _: None, known: str = "none") -> tuple[dict[str, Tensor], AppGrid]:
    """Run two rounds of FedAvg with two clients, one round captured; return the last weights."""
    grid = AppGrid(make_app([], spoil), [{}, {}], {})
    strategy = CapturingStrategy(FedAvg(fraction_evaluate=0.0), describe(), folder, rounds=[2], known_defences=known)
    result = strategy.start(grid, ArrayRecord(make_net().state_dict()), num_rounds=2)
    return dict(result.arrays.to_torch_state_dict()), grid


def test_the_server_captures_every_reply_of_a_chosen_round(tmp_path: Path) -> None:
    weights, grid = run_strategy(tmp_path, known="clip:9")
    names = {path.name for path in tmp_path.glob("*.safetensors")}
    assert names == {"round-0002-client-01.safetensors", "round-0002-client-02.safetensors"}
    captured = read_capsule(tmp_path / min(names), describe().pixel_model())
    assert [str(defence) for defence in captured.known_defences] == ["clip:9"]
    reply: Message = grid.history[2]
    for name in describe().trained:
        sum_of_both = captured.weights[f"1.{name}"] + captured.update.tensors[f"1.{name}"]
        assert torch.allclose(sum_of_both, read_arrays(reply)[name], atol=1e-6)
        assert torch.allclose(sum_of_both, weights[name], atol=1e-6)


def test_the_wrapped_strategy_computes_the_same(tmp_path: Path) -> None:
    plain = FedAvg(fraction_evaluate=0.0).start(
        AppGrid(make_app([]), [{}, {}], {}), ArrayRecord(make_net().state_dict()), num_rounds=2
    )
    ours, _ = run_strategy(tmp_path)
    assert all(torch.equal(ours[name], tensor) for name, tensor in plain.arrays.to_torch_state_dict().items())


def test_a_bad_reply_is_handed_on_without_a_capsule(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gradveil"):
        run_strategy(tmp_path, make_nan)
    assert "node 1 in round 2 was not captured" in caplog.text
    assert list(tmp_path.iterdir()) == []
