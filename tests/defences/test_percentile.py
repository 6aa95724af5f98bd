"""Percentile privacy: NVFlare's filter, and what its release still tells."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gradveil.defences import KnownRelease, Percentile, Released, known_release, parse_defence
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


def known_of(seen: torch.Tensor, participants: int = 1) -> KnownRelease:
    model = build("mlp", (1, 9, 9), 4, (0.5,), (0.5,), generator(0))
    return known_release([Percentile()], Released(seen, {"all": 4}, model, 1, participants), participants)


def test_a_candidate_may_go_beyond_the_cap_and_nowhere_else() -> None:
    seen = torch.cat([torch.tensor([[0.01, -0.01]]), torch.full((1, 18), 0.005)], 1)
    known = known_of(seen)
    larger = known(torch.full_like(seen, 7.0).index_fill(1, torch.tensor([1]), -3.0), {"all": 20})
    torch.testing.assert_close(larger, torch.cat([torch.tensor([[0.01, -0.01]]), torch.full((1, 18), 7.0)], 1))
    wrong = seen.clone()
    wrong[0, 0] = -7.0
    torch.testing.assert_close(known(wrong, {"all": 20}), wrong)


def test_a_candidate_is_held_to_the_cap_if_much_stands_at_it() -> None:
    known = known_of(torch.tensor([[0.01, -0.01, 0.005, 0.004]]))
    larger = torch.tensor([[7.0, -3.0, 0.005, 0.004]])
    torch.testing.assert_close(known(larger, {"all": 4}), larger)


def test_a_candidate_may_be_small_where_the_release_is_zero_and_no_larger() -> None:
    known = known_of(torch.tensor([[0.01, -0.005, 0.0, 0.0]]))
    found = known(torch.tensor([[0.01, -0.001, 0.004, -0.007]]), {"all": 4})
    torch.testing.assert_close(found, torch.tensor([[0.01, -0.001, 0.0, -0.002]]))


def test_zeros_say_nothing_if_all_else_stands_at_the_cap_or_there_are_several_participants() -> None:
    capped = known_of(torch.tensor([[0.01, -0.01, 0.0, 0.0]]))
    candidate = torch.tensor([[0.01, -0.01, 7.0, -7.0]])
    torch.testing.assert_close(capped(candidate, {"all": 4}), torch.tensor([[0.01, -0.01, 0.0, 0.0]]))
    several = known_of(torch.tensor([[0.01, -0.005, 0.0, 0.0]]), participants=2)
    assert several.forms == ()
    torch.testing.assert_close(several(candidate, {"all": 4}), torch.tensor([[0.01, -0.01, 0.0, 0.0]]))
