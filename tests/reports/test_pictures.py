"""Pictures hold the pixels they were given."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from gradveil.reports.pictures import data_address, draw_grid, to_image


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_survive(channels: int) -> None:
    values = torch.randint(0, 256, (channels, 5, 7), generator=torch.Generator().manual_seed(0))
    address = data_address(values / 255)
    content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    pixels = np.asarray(Image.open(io.BytesIO(content))).reshape(5, 7, channels)
    assert (pixels == values.permute(1, 2, 0).numpy()).all()


def test_values_out_of_range_are_clamped() -> None:
    assert to_image(torch.tensor([[[-1.0, 2.0]]])).tobytes() == bytes([0, 255])


def test_a_missing_picture_is_crossed_out() -> None:
    white = torch.ones(1, 8, 8)
    whole = draw_grid([("rebuilt", [white, white])])
    holed = draw_grid([("rebuilt", [white, None])])
    assert whole.size == holed.size
    assert (255, 0, 0) in {color for _, color in holed.getcolors(10**6) or []}
    assert (255, 0, 0) not in {color for _, color in whole.getcolors(10**6) or []}
