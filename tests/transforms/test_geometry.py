"""Kernels that move pixels."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradveil.rng import generator
from gradveil.transforms import OPERATIONS
from gradveil.transforms.geometry import by_magnitude
from tests.transforms.pillow_reference import apply_all, check_any_magnitudes, check_every_level

NAMES = ("shearX", "shearY", "translateX", "translateY", "rotate")


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_kernels_equal_pillow_for_any_magnitudes(name: str, data: st.DataObject) -> None:
    check_any_magnitudes(name, data)


@pytest.mark.parametrize("name", NAMES)
def test_every_level_equals_pillow(name: str) -> None:
    check_every_level(name)


@pytest.mark.parametrize(
    "magnitude", [0.5 / 32, -0.5 / 32, math.nextafter(0.5 / 32, 0), math.nextafter(0.5 / 32, 1), 1.0, -1.0, 2.0]
)
@pytest.mark.parametrize("name", ["translateX", "translateY", "shearX", "shearY"])
def test_moves_by_halves_and_out_of_sight_equal_pillow(name: str, magnitude: float) -> None:
    """Half a pixel is where the nearest one changes; a whole side leaves nothing in sight."""
    images = torch.randint(256, (2, 3, 32, 32), generator=generator(6)).to(torch.uint8)
    magnitudes = torch.tensor([magnitude, -magnitude], dtype=torch.float64)
    assert torch.equal(OPERATIONS[name].kernel(images, magnitudes), apply_all(name, images, magnitudes))


@pytest.mark.parametrize("degrees", [90.0, 180.0, 270.0, 360.0, -45.0])
def test_rotations_that_pillow_treats_apart_equal_it(degrees: float) -> None:
    images = torch.randint(256, (1, 3, 12, 12), generator=generator(7)).to(torch.uint8)
    magnitudes = torch.tensor([degrees], dtype=torch.float64)
    assert torch.equal(OPERATIONS["rotate"].kernel(images, magnitudes), apply_all("rotate", images, magnitudes))


def test_runs_of_one_magnitude_are_computed_together() -> None:
    calls: list[tuple[float, int]] = []

    def add(magnitude: float, part: torch.Tensor) -> torch.Tensor:
        calls.append((magnitude, len(part)))
        return part + magnitude

    images = torch.zeros(5, 1, 2, 2)
    magnitudes = torch.tensor([1.0, 1.0, 2.0, 1.0, 1.0])
    assert by_magnitude(images, magnitudes, add)[:, 0, 0, 0].tolist() == magnitudes.tolist()
    assert calls == [(1.0, 2), (2.0, 1), (1.0, 2)]
