"""Clipping bounds the length of an update."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gradveil.defences import Clip, Released, known_release
from tests.defences.released import error, flat, release, update


@pytest.mark.parametrize("from_weak_to_strong", [["clip:100", "clip:1", "clip:0.1"]], ids=lambda texts: texts[1])
def test_stronger_is_further_from_the_truth(from_weak_to_strong: list[str]) -> None:
    errors = [error(text) for text in from_weak_to_strong]
    assert errors == sorted(errors)
    assert errors[-1] > errors[0]


def test_clipping_bounds_the_norm_and_keeps_the_direction() -> None:
    released, before = flat(release("clip:0.5")), flat(dict(update().tensors))
    assert float(released.norm()) == pytest.approx(0.5, rel=1e-5)
    assert float(torch.cosine_similarity(released, before, dim=0)) == pytest.approx(1, abs=1e-6)


def test_longer_candidates_are_shortened_and_others_are_left() -> None:
    released = Released(torch.ones(2, 2), {"all": 2}, nn.Identity(), 1)
    candidate = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    known = known_release([Clip(1.0)], released)(candidate, {"all": 2})
    torch.testing.assert_close(known, torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    several = known_release([Clip(1.0)], replace(released, images=2, participants=2), 2)
    assert torch.equal(several(candidate, {"all": 2}), candidate)
