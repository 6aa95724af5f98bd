"""The chance floors of every arm."""

from dataclasses import replace

import pytest
import torch

from gradveil import data
from gradveil.audit import Floors, FloorSettings, make_floors
from gradveil.audit.floors import PICTURES, divide
from gradveil.data import ImageSet
from gradveil.defences import parse_arm
from gradveil.metrics import psnr
from gradveil.types import to_pixels

SAMPLE = data.load("fashion-mnist-sample")


def floors_of(arm: str = "none", **changes: object) -> Floors:
    settings = replace(FloorSettings(300), **changes)  # type: ignore[arg-type]
    return make_floors(SAMPLE, [parse_arm(arm)], settings, lambda _: None)[arm]


def test_floors_come_from_public_images_alone_and_fit_the_arm() -> None:
    arms = [parse_arm(arm) for arm in ("none", "policy:3-1-7")]
    shares: list[float] = []
    floors = make_floors(SAMPLE, arms, FloorSettings(300), shares.append)
    assert shares == [0.5, 1.0]
    plain, moved = floors["none"], floors["policy:3-1-7"]
    assert torch.equal(plain.original.means, moved.original.means)
    assert not torch.equal(plain.transformed.means, moved.transformed.means)
    assert plain.transformed.kind == "class mean"
    other = replace(SAMPLE, test=SAMPLE.test.take(torch.arange(10)))
    again = make_floors(other, arms[:1], FloorSettings(300), lambda _: None)["none"]
    assert torch.equal(again.original.means, plain.original.means)


def test_without_labels_no_class_is_guessed() -> None:
    floor = floors_of(labels_known=False).original
    assert floor.kind in ("mean image", "mean colour")
    few = SAMPLE.test.take(torch.arange(50))
    guesses = psnr(floor.fill(few.labels), to_pixels(few.images))
    assert float(guesses.mean()) == pytest.approx(10.9, abs=1.0)


def test_the_images_that_judge_are_outside_the_pool() -> None:
    numbered = torch.arange(1000, dtype=torch.int64)
    images = torch.stack([numbered % 256, numbered // 256], 1).to(torch.uint8)
    marked = ImageSet(images.view(1000, 1, 2, 1), numbered % 10)
    pool, judged = divide(replace(SAMPLE, train=marked, test=marked), FloorSettings())
    names = [{tuple(image.flatten().tolist()) for image in part.images} for part in (pool, judged)]
    assert len(names[0]) == 800
    assert len(names[1]) == 200
    assert not names[0] & names[1]


def test_the_pool_grows_with_the_classes() -> None:
    many = replace(SAMPLE, class_names=tuple(map(str, range(45))))
    assert len(divide(SAMPLE, FloorSettings())[0]) == 2000
    assert len(divide(many, FloorSettings())[0]) == 5000 - 512
    assert len(divide(many, FloorSettings(77))[0]) == 77


def test_a_guess_of_few_images_does_not_win_against_the_mean_image() -> None:
    """Class means of one image each fit the images they are made of, and no others."""
    classes = 200
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (400, 1, 8, 8), generator=generator).to(torch.uint8)
    noise = ImageSet(images, torch.arange(400) % classes)
    made_up = replace(SAMPLE, train=noise, test=noise, class_names=tuple(map(str, range(classes))))
    floors = make_floors(made_up, [parse_arm("none")], FloorSettings(), lambda _: None)["none"]
    assert floors.original.kind != "class mean"


def test_in_large_rounds_the_floor_has_the_freedom_of_pairing() -> None:
    """Without labels, sixteen public pictures paired with sixteen images beat sixteen times the mean image."""
    large, single = floors_of(labels_known=False, round_images=16), floors_of(labels_known=False)
    assert large.original.kind == PICTURES
    assert single.original.kind != PICTURES
    targets, labels = to_pixels(SAMPLE.test.images[:16]), SAMPLE.test.labels[:16]
    paired = psnr(large.original.answer(targets, labels, 3, False), targets).mean()
    plain = psnr(single.original.answer(targets, labels, 3, False), targets).mean()
    assert paired > plain
