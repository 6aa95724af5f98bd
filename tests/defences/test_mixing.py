"""Defences that mix images."""

import pytest
import torch

from gradveil.defences import known_smooth, parse_defence, parse_defences
from gradveil.rng import generator
from gradveil.types import Batch


def test_mixing_is_a_convex_mixture_and_draws_labels_by_share() -> None:
    dark, bright = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    many = Batch(torch.cat([dark, bright] * 500), torch.tensor([0, 1] * 500))
    pair = parse_defence("mixup").batch(Batch(torch.cat([dark, bright]), torch.tensor([0, 1])), generator(3))
    assert float(pair.images[0].max()) <= 0.5 <= float(pair.images[1].min())
    mixed = parse_defence("mixup").batch(many, generator(0))
    assert float(mixed.images.mean()) == pytest.approx(float(mixed.labels.double().mean()), abs=0.06)


def test_instahide_flips_about_half_of_the_pixels() -> None:
    dark = Batch(torch.zeros(8, 1, 16, 16), torch.zeros(8, dtype=torch.int64))
    hidden = parse_defence("instahide").batch(dark, generator(0)).images
    assert set(hidden.unique().tolist()) == {0.0, 1.0}  # type: ignore[no-untyped-call]
    assert float(hidden.mean()) == pytest.approx(0.5, abs=0.06)


def test_only_flipped_pixels_are_known_not_to_be_smooth() -> None:
    assert known_smooth(parse_defences(["mixup", "gaussian:1"]))
    assert not known_smooth(parse_defences(["gaussian:1", "instahide"]))
