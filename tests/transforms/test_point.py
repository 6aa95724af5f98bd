"""Kernels that map values."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS
from gradveil.transforms.point import autocontrast_table, count_values, equalize_table, look_up
from tests.transforms.pillow_reference import apply_all, check_any_magnitudes, check_every_level

NAMES = ("brightness", "posterize", "solarize", "autocontrast", "equalize", "invert")


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_kernels_equal_pillow_for_any_magnitudes(name: str, data: st.DataObject) -> None:
    check_any_magnitudes(name, data)


@pytest.mark.parametrize("name", NAMES)
def test_every_level_equals_pillow(name: str) -> None:
    check_every_level(name)


def test_equalize_of_many_pixels_is_exact() -> None:
    """Above four million pixels the counts no longer fit into single precision."""
    row = torch.arange(2100).remainder(251).to(torch.uint8)
    image = (row[:, None] ^ row[None])[None, None]
    none = torch.zeros(1, dtype=torch.float64)
    assert torch.equal(OPERATIONS["equalize"].kernel(image, none), apply_all("equalize", image, none))


def test_values_are_counted_in_each_channel() -> None:
    images = torch.randint(256, (100, 3, 6, 5), generator=generator(0, "images")).to(torch.uint8)
    counts = count_values(images)
    assert counts.shape == (100, 3, 256)
    assert torch.equal(counts[70, 2], images[70, 2].flatten().long().bincount(minlength=256))


def test_tables_are_the_kernels() -> None:
    images = torch.randint(30, 200, (4, 3, 9, 9), generator=generator(0, "images")).to(torch.uint8)
    none = torch.zeros(4, dtype=torch.float64)
    for name, table in (("autocontrast", autocontrast_table), ("equalize", equalize_table)):
        assert torch.equal(look_up(images, table(count_values(images))), OPERATIONS[name].kernel(images, none))
