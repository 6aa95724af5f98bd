"""Kernels that blend an image with a plainer version of itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradveil.transforms import OPERATIONS
from tests.transforms.pillow_reference import apply_all, check_any_magnitudes, check_every_level

NAMES = ("color", "contrast", "sharpness")


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_kernels_equal_pillow_for_any_magnitudes(name: str, data: st.DataObject) -> None:
    check_any_magnitudes(name, data)


@pytest.mark.parametrize("name", NAMES)
def test_every_level_equals_pillow(name: str) -> None:
    check_every_level(name)


def test_contrast_of_many_pixels_is_exact() -> None:
    """Above four million pixels the counts no longer fit into single precision."""
    row = torch.arange(2100).remainder(251).to(torch.uint8)
    image = (row[:, None] ^ row[None])[None, None]
    none = torch.zeros(1, dtype=torch.float64)
    assert torch.equal(OPERATIONS["contrast"].kernel(image, none + 0.3), apply_all("contrast", image, none + 0.3))


def test_a_grey_image_has_no_colour_to_change() -> None:
    image = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
    assert torch.equal(OPERATIONS["color"].kernel(image, torch.tensor([0.5], dtype=torch.float64)), image)
