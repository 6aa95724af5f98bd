"""Pictures of scores."""

import io

import pytest
import torch
from PIL import Image

from gradveil.errors import SettingsError
from gradveil.reports.score_figures import Bar, draw_bars, draw_similarity

POINTS = (0.0, 0.5, 1.0)


def picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


@pytest.mark.parametrize("images", [1, 4])
def test_curves_are_drawn_for_any_number_of_images(images: int) -> None:
    curves = torch.rand(images, 3, dtype=torch.float64)
    one = picture(draw_similarity({"none": curves}, POINTS, "t"))
    both = picture(draw_similarity({"none": curves, "3-1-7": curves / 2}, POINTS, "t"))
    assert min(one.size) > 300
    assert one.tobytes() != both.tobytes()


def test_marked_bars_stand_out() -> None:
    bars = [Bar("3 translateX:9 *", 0.4, 0.05, True), Bar("4", 0.6, None, False)]
    red = (214, 39, 40)
    assert has(picture(draw_bars(bars, 0.5, "t")), red)
    assert not has(picture(draw_bars(bars[1:], 0.5, "t")), red)


def has(image: Image.Image, colour: tuple[int, int, int]) -> bool:
    counts = image.getcolors(image.width * image.height)
    assert counts is not None
    return any(count > 50 and found == colour for count, found in counts)


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(SettingsError, match="no scores to draw"):
        draw_bars([], 0.5, "t")
