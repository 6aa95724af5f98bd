"""Signs and random rounding."""

import math

import pytest
import torch
from torch import nn

from gradveil.defences import Quantise, Released, known_release, parse_defence
from gradveil.rng import generator
from gradveil.types import Update
from tests.defences.released import error, release, update


@pytest.mark.parametrize(
    "from_weak_to_strong", [["quantise:16", "quantise:8", "quantise:4", "quantise:2"]], ids=lambda texts: texts[1]
)
def test_stronger_is_further_from_the_truth(from_weak_to_strong: list[str]) -> None:
    errors = [error(text) for text in from_weak_to_strong]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0]


def test_sign_leaves_one_magnitude_for_each_tensor() -> None:
    for name, tensor in release("sign").items():
        assert len(tensor.abs().unique()) == 1  # type: ignore[no-untyped-call]
        assert torch.equal(tensor.sign(), update().tensors[name].sign())


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_quantised_entries_take_few_values_and_are_right_on_average(bits: int) -> None:
    before = update().tensors["second"]
    draws = torch.stack([release(f"quantise:{bits}", seed)["second"] for seed in range(60)])
    step = float(before.abs().max()) / (2 ** (bits - 1) - 1)
    assert len((draws / step).round().unique()) <= 2**bits - 1
    assert float((draws - before).abs().max()) <= step * 1.001
    assert float((draws.mean(0) - before).abs().max()) < 5 * step / (2 * math.sqrt(60))


def test_zeros_pass_through_everything() -> None:
    empty = Update({"weight": torch.zeros(6)}, 1)
    for text in ("prune:50", "topk:10", "clip:1", "sign", "quantise:4"):
        assert not parse_defence(text).release(empty, generator(0)).tensors["weight"].any()


def test_an_entry_halfway_between_steps_weighs_least() -> None:
    known = known_release([Quantise(2)], Released(torch.tensor([[1.0, 0.0, -1.0]]), {"all": 3}, nn.Identity(), 1))
    assert known.rounding is not None
    assert torch.equal(known.rounding.steps, torch.ones(1, 3))
    low, half, high = known.rounding.weights(torch.tensor([[0.001, 0.5, 0.999]]))[0].tolist()
    assert half == pytest.approx(2)
    assert low == pytest.approx(high)
    assert low > 3 * half


def test_a_mean_of_several_participants_and_fine_steps_are_not_weighed() -> None:
    seen, sizes = torch.ones(1, 3), {"all": 3}
    assert known_release([Quantise(8)], Released(seen, sizes, nn.Identity(), 1)).rounding is None
    assert known_release([Quantise(2)], Released(seen, sizes, nn.Identity(), 2, participants=2), 2).rounding is None
