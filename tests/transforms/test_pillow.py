"""The definition of the operations, on one image."""

import pytest
import torch
from PIL import Image

from gradveil.errors import DataError
from gradveil.rng import generator
from gradveil.transforms import OPERATIONS, pillow


def test_every_operation_is_defined() -> None:
    assert set(pillow.OPERATIONS) == set(OPERATIONS)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_and_tensors_convert_without_loss(channels: int) -> None:
    pixels = torch.randint(256, (channels, 5, 7), generator=generator(0, "pixels")).to(torch.uint8)
    image = pillow.to_image(pixels)
    assert (image.mode, image.size) == (pillow.MODES[channels], (7, 5))
    assert torch.equal(pillow.to_tensor(image), pixels)


def test_other_modes_are_refused() -> None:
    with pytest.raises(DataError, match=r"mode P: only L and RGB are supported; call image.convert\('RGB'\)"):
        pillow.to_tensor(Image.new("P", (4, 4)))


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_neutral_magnitude_changes_nothing(name: str, mode: str) -> None:
    neutral = OPERATIONS[name].neutral
    if neutral is not None:
        pixels = torch.randint(256, (1 if mode == "L" else 3, 6, 8), generator=generator(1, "pixels")).to(torch.uint8)
        image = pillow.to_image(pixels)
        assert torch.equal(pillow.to_tensor(pillow.OPERATIONS[name](image, neutral)), pixels)


def test_what_comes_in_is_black_or_grey() -> None:
    white = Image.new("RGB", (8, 8), "white")
    assert pillow.translate_x(white, 0.25).getpixel((7, 0)) == (0, 0, 0)
    assert pillow.translate_x(white, 0.25).getpixel((0, 0)) == (255, 255, 255)
    assert pillow.rotate(white, 30).getpixel((0, 0)) == (pillow.GREY,) * 3
