"""Contact sheets."""

import io

import pytest
import torch
from PIL import Image

from gradveil.reports import draw_catalogue, draw_policies
from gradveil.reports.sheet import SMALLEST, alternating_signs, functions
from gradveil.rng import generator
from gradveil.transforms import CATALOGUE, Policy, parse_policy

IMAGES = torch.randint(256, (2, 1, 28, 28), generator=generator(0, "images")).to(torch.uint8)


def read(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("L")


def test_a_catalogue_has_a_row_for_every_function_and_every_image_twice() -> None:
    sheet = read(draw_catalogue(CATALOGUE, IMAGES))
    # The original, 27 functions, two identities, and shearX, which the catalogue lacks.
    assert sheet.height == 31 * (3 * 28 + 4)
    assert sheet.width > 4 * 3 * 28


def test_every_function_is_listed_once_with_all_its_indices() -> None:
    listed = dict(functions(CATALOGUE, CATALOGUE))
    assert listed["translateX:9   3"] == 3
    indices = sorted(int(number) for label in listed for number in label.partition("   ")[2].split(", "))
    assert indices == list(range(50))


@pytest.mark.parametrize(("index", "signs"), [(3, [-1, 1, -1, 1]), (9, [1, 1, 1, 1])])
def test_signs_alternate_where_they_are_drawn(index: int, signs: list[int]) -> None:
    assert alternating_signs(Policy((index,)), 4).signs.flatten().tolist() == signs


def test_a_policy_has_a_row_for_every_step() -> None:
    policies = parse_policy("3-1-7+43-18")
    first, again, other = (draw_policies(policies, IMAGES, generator(seed)) for seed in (1, 1, 2))
    assert read(first).height == 6 * (3 * 28 + 4)
    assert first == again != other


def test_small_pictures_are_enlarged_and_large_ones_are_not() -> None:
    none = parse_policy("none")
    small, large = torch.zeros(1, 1, 10, 10, dtype=torch.uint8), torch.zeros(1, 1, 100, 100, dtype=torch.uint8)
    assert read(draw_policies(none, small, generator(0))).height == 80 + 4
    assert read(draw_policies(none, large, generator(0))).height == 100 + 4
    assert SMALLEST <= 80
