"""The state of a training: sealed, and damage to it never changes the result."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gradveil.client import make_optimiser
from gradveil.errors import CheckpointError
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import FAST
from gradveil.training.state import STATE, RunFolder, State

SPEC = ModelSpec("lenet", (1, 28, 28), 10, (0.3,), (0.35,))


def open_run(path: Path) -> tuple[RunFolder, torch.nn.Module, torch.optim.Optimizer]:
    model = SPEC.build(generator(0, "model"))
    return RunFolder(path, SPEC, {"seed": 0}), model, make_optimiser(model, replace(FAST, threads=1).local())


def test_a_flipped_byte_anywhere_is_refused(tmp_path: Path) -> None:
    folder, model, optimiser = open_run(tmp_path)
    folder.save_state(model, optimiser, State(step=5, loss=1.25))
    assert folder.load_state(model, optimiser) == State(step=5, loss=1.25)
    whole = (tmp_path / STATE).read_bytes()
    for place in range(10, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / STATE).write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"resume\.safetensors .*--overwrite"):
            folder.load_state(model, optimiser)


def test_the_snapshot_of_another_phase_is_refused(tmp_path: Path) -> None:
    folder, model, _ = open_run(tmp_path)
    for phase, step in (("init", 0), ("epoch-1", 5)):
        folder.save_snapshot(phase, step, dict(model.state_dict()))
    assert folder.load_snapshot("init", model).keys() == model.state_dict().keys()
    for suffix in ("safetensors", "json"):
        (tmp_path / f"epoch-1.{suffix}").replace(tmp_path / f"init.{suffix}")
    with pytest.raises(CheckpointError, match=r"init\.safetensors holds the weights of another phase"):
        folder.load_snapshot("init", model)
