"""Weights from files of others: what is understood, and what is refused in one line."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from gradveil import data
from gradveil.errors import CheckpointError
from gradveil.losses import CrossEntropy, parse_loss
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.training import BRIEF, load_given, save_checkpoint

SAMPLE = data.load("fashion-mnist-sample")
SPEC = ModelSpec("lenet", SAMPLE.shape, SAMPLE.classes, SAMPLE.mean, SAMPLE.std)


def make_weights() -> dict[str, Tensor]:
    return SPEC.build(generator(5, "model")).state_dict()


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda weights: weights,
        lambda weights: {"state_dict": weights, "epoch": 3},
        lambda weights: {"model_state_dict": weights, "optimizer": {"lr": 0.1}},
        lambda weights: {f"module.{name}": tensor for name, tensor in weights.items()},
    ],
)
def test_a_state_dict_is_read_however_it_was_wrapped(tmp_path: Path, wrap: Any) -> None:
    torch.save(wrap(make_weights()), tmp_path / "weights.pt")
    given = load_given(tmp_path / "weights.pt", "lenet", SAMPLE)
    assert same(given.weights, make_weights())
    assert (given.spec, given.loss) == (SPEC, CrossEntropy())


def test_safetensors_need_no_description(tmp_path: Path) -> None:
    save_file(make_weights(), tmp_path / "weights.safetensors")
    assert same(load_given(tmp_path / "weights.safetensors", "lenet", SAMPLE).weights, make_weights())


def test_a_checkpoint_of_ours_names_model_and_loss(tmp_path: Path) -> None:
    path = tmp_path / "final.safetensors"
    save_checkpoint(path, make_weights(), SPEC, {"phase": "final", "settings": BRIEF.to_record()})
    given = load_given(path, None, SAMPLE)
    assert (given.spec.name, given.loss) == ("lenet", parse_loss(BRIEF.loss))


def write(path: Path, content: object) -> None:
    torch.save(content, path)


@pytest.mark.parametrize(
    ("make", "model", "reason"),
    [
        (lambda path: write(path, make_weights()), None, "name the model with --model"),
        (lambda path: write(path, make_weights()), "lenet-relu", "does not fit the model"),
        (lambda path: write(path, SPEC.build(generator(0, "model"))), "lenet", "code from a file is not run"),
        (lambda path: write(path, {"epoch": 3}), "lenet", "holds no state_dict"),
        (lambda path: path.write_text("hello"), "lenet", "cannot be read as weights"),
        (lambda path: path.write_bytes(b""), "lenet", "cannot be read as weights"),
        (lambda path: path.mkdir(), "lenet", "is no file"),
        (lambda _: None, "lenet", "no such file"),
        (
            lambda path: write(path, {name: tensor * torch.nan for name, tensor in make_weights().items()}),
            "lenet",
            "NaN or infinity",
        ),
    ],
)
def test_what_is_no_fitting_state_dict_is_refused(tmp_path: Path, make: Any, model: str | None, reason: str) -> None:
    make(tmp_path / "weights.pt")
    with pytest.raises(CheckpointError, match=reason) as caught:
        load_given(tmp_path / "weights.pt", model, SAMPLE)
    assert "\n" not in str(caught.value)


def test_weights_for_other_images_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "final.safetensors"
    other = ModelSpec("lenet", SAMPLE.shape, 7, SAMPLE.mean, SAMPLE.std)
    save_checkpoint(path, other.build(generator(0, "model")).state_dict(), other, {"phase": "final"})
    with pytest.raises(CheckpointError, match="in 7 classes, the data has"):
        load_given(path, None, SAMPLE)
