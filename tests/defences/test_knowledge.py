"""What an attacker who knows how updates are released makes of candidates."""

from dataclasses import replace

import pytest
import torch

from gradveil.defences import KnownRelease, Released, build_defended, known_release, parse_arm
from gradveil.defences.knowledge import soften_signs
from gradveil.gradients import parameters_of
from gradveil.models import ModelSpec
from gradveil.rng import generator
from gradveil.types import Update

SPEC = ModelSpec("mlp", (1, 9, 9), 4, (0.5,), (0.5,))
SIZES = {"first": 6, "second": 4}


def released(tensor: torch.Tensor) -> Released:
    return Released(tensor, SIZES, SPEC.build(generator(0)), 1)


def random_rows(count: int = 3) -> torch.Tensor:
    return torch.randn(count, 10, generator=generator(1))


@pytest.mark.parametrize("arm", ["prune:50", "topk:50", "soteria:50"])
def test_entries_that_were_zeroed_are_left_out(arm: str) -> None:
    seen = random_rows()
    seen[:, ::2] = 0
    known = known_release(parse_arm(arm).defences, released(seen))
    candidate = random_rows() + 1
    assert torch.equal(known(candidate, SIZES), candidate * (seen != 0))


def test_a_candidate_whose_signs_are_released_looks_as_the_client_would_release_it() -> None:
    candidate = random_rows()
    known = known_release(parse_arm("sign").defences, released(candidate))
    sign = parse_arm("sign,no-base").defences[0]
    for row in range(3):
        parts = dict(zip(SIZES, torch.split(candidate[row], list(SIZES.values())), strict=True))
        client = sign.release(Update(parts, 1), generator(0)).tensors
        assert torch.allclose(known(candidate, SIZES, softness=0)[row], torch.cat(list(client.values())))


def test_softened_signs_have_a_slope() -> None:
    candidate = random_rows().requires_grad_()
    (slope,) = torch.autograd.grad(soften_signs(candidate, SIZES, 0.5).square().sum(), candidate)
    assert slope.isfinite().all()
    assert slope.any()


def test_what_precode_draws_is_left_out_and_the_rest_is_kept() -> None:
    defences = parse_arm("precode:width=4,no-base").defences
    model = build_defended(SPEC, defences, 0)
    sizes = {name: tensor.numel() for name, tensor in parameters_of(model).items()}
    total = sum(sizes.values())
    known = known_release(defences, Released(torch.ones(2, total), sizes, model, 1))
    shown = dict(zip(sizes, torch.split(known(torch.ones(2, total), sizes)[0], list(sizes.values())), strict=True))
    assert all(bool(part.any()) != name.startswith("head") for name, part in shown.items())


def test_what_several_defences_hide_is_hidden_together() -> None:
    known = KnownRelease().hide(torch.tensor([[True, False, False]])).hide(torch.tensor([[False, True, False]]))
    assert known(torch.ones(1, 3), {"all": 3}).tolist() == [[0, 0, 1]]


def test_rows_are_kept_together() -> None:
    shown = torch.eye(3, dtype=torch.bool)
    known = replace(KnownRelease(), shown=shown).keep(torch.tensor([2]))
    assert known(torch.ones(1, 3), {"all": 3}).tolist() == [[0, 0, 1]]
    assert KnownRelease().keep(torch.tensor([0])).shown is None


def test_those_who_say_nothing_change_nothing() -> None:
    candidate = random_rows()
    for arm in ("crop-flip", "clip:1e9", "quantise:4", "mixup", "instahide", "oasis"):
        known = known_release(parse_arm(arm).defences, released(candidate))
        assert torch.equal(known(candidate, SIZES), candidate)
