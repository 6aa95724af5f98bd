"""The chance floors of every arm."""

from dataclasses import replace

import pytest
import torch

from gradveil import data
from gradveil.audit import make_floors
from gradveil.defences import parse_arm
from gradveil.metrics import psnr
from gradveil.types import to_pixels


def test_floors_come_from_public_images_alone_and_fit_the_arm() -> None:
    sample = data.load("fashion-mnist-sample")
    arms = [parse_arm(arm) for arm in ("none", "policy:3-1-7")]
    shares: list[float] = []
    floors = make_floors(sample, arms, 300, True, 0, shares.append)
    assert shares == [0.5, 1.0]
    plain, moved = floors["none"], floors["policy:3-1-7"]
    assert torch.equal(plain.original.images, moved.original.images)
    assert not torch.equal(plain.transformed.images, moved.transformed.images)
    assert plain.transformed.kind == "class mean"
    other = replace(sample, test=sample.test.take(torch.arange(10)))
    again = make_floors(other, arms[:1], 300, True, 0, lambda _: None)["none"]
    assert torch.equal(again.original.images, plain.original.images)


def test_without_labels_no_class_is_guessed() -> None:
    sample = data.load("fashion-mnist-sample")
    floor = make_floors(sample, [parse_arm("none")], 300, False, 0, lambda _: None)["none"].original
    assert floor.kind in ("mean image", "mean colour")
    few = sample.test.take(torch.arange(50))
    guesses = psnr(floor.guess(few.labels), to_pixels(few.images))
    assert float(guesses.mean()) == pytest.approx(10.9, abs=1.0)
