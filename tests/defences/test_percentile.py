"""Percentile privacy: NVFlare's filter, and what its release still tells."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gradveil.defences import Percentile, Released, known_release, parse_defence
from gradveil.models import build
from gradveil.rng import generator
from gradveil.types import LocalTraining, Update
from tests.defences.released import error, flat, release, update


def nvflare(tensors: dict[str, torch.Tensor], percent: float, gamma: float, steps: int) -> dict[str, np.ndarray]:
    """Follow the description of NVFlare's filter in plain numpy."""
    scaled = {name: tensor.numpy() / steps for name, tensor in tensors.items()}
    cutoff = np.percentile(np.concatenate([np.abs(part).ravel() for part in scaled.values()]), percent)
    kept = {name: np.where((part > -cutoff) & (part < cutoff), 0, part) for name, part in scaled.items()}
    return {name: steps * np.clip(part, -gamma, gamma) for name, part in kept.items()}


@pytest.mark.parametrize(
    "from_weak_to_strong",
    [
        ["percentile:percent=0:gamma=9", "percentile:gamma=0.1", "percentile:gamma=0.01", "percentile:gamma=1e-4"],
        ["percentile:percent=10:gamma=9", "percentile:percent=50:gamma=9", "percentile:percent=99:gamma=9"],
    ],
    ids=lambda texts: texts[1],
)
def test_stronger_is_further_from_the_truth(from_weak_to_strong: list[str]) -> None:
    errors = [error(text) for text in from_weak_to_strong]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0]


@pytest.mark.parametrize("percent", [0, 10, 33.3, 100])
def test_one_gradient_is_filtered_as_nvflare_does(percent: float) -> None:
    expected = nvflare(dict(update().tensors), percent, 0.05, 1)
    for name, tensor in release(f"percentile:percent={percent}:gamma=0.05").items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], rtol=1e-5)


def test_the_change_of_several_steps_is_filtered_per_step() -> None:
    several = replace(update(), local=LocalTraining(steps=4, batch_size=1))
    expected = nvflare(dict(several.tensors), 10, 0.01, 4)
    found = Percentile().release(several, generator(0)).tensors
    assert float(flat(dict(found)).abs().max()) == pytest.approx(0.04)
    for name, tensor in found.items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], rtol=1e-5)


def test_a_number_that_stands_alone_is_left_as_it_is() -> None:
    alone = Update({"scale": torch.tensor(5.0), "weight": torch.ones(4)}, 1)
    released = parse_defence("percentile").release(alone, generator(0)).tensors
    assert float(released["scale"]) == 5
    assert float(released["weight"].max()) == pytest.approx(0.01)


def test_a_candidate_may_go_beyond_the_cap_and_nowhere_else() -> None:
    model = build("mlp", (1, 9, 9), 4, (0.5,), (0.5,), generator(0))
    seen = torch.tensor([[0.01, -0.01, 0.005, 0.0]])
    known = known_release([Percentile()], Released(seen, {"all": 4}, model, 1))
    larger = known(torch.tensor([[7.0, -3.0, 7.0, 7.0]]), {"all": 4})
    torch.testing.assert_close(larger, torch.tensor([[0.01, -0.01, 7.0, 0.0]]))
    wrong = torch.tensor([[-7.0, 0.002, 0.001, 7.0]])
    torch.testing.assert_close(known(wrong, {"all": 4}), torch.tensor([[-7.0, 0.002, 0.001, 0.0]]))
    several = known_release([Percentile()], Released(seen, {"all": 4}, model, 2, participants=2), 2)
    assert several.forms == ()
